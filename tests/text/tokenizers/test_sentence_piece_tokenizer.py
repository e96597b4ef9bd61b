"""ALBERT's, XLM-RoBERTa's and other tokenizers give the ids of sentencepiece, of Google's code and of transformers."""

import json
import re

import pytest
import sentencepiece
import transformers
from hostile_texts import HOSTILE_TEXTS
from made_tokenizers import (
    SENTENCE_PIECE,
    SENTENCES,
    albert_tokenizer,
    bigbird_tokenizer,
    camembert_tokenizer,
    learned_sentence_pieces,
    published_bigbird,
    tokenizer_of_transformers,
    tokenizer_that_cuts_pieces,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import once
from tokenizers import Tokenizer

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers import BigBirdTokenizer, CamembertTokenizer, open_tokenizer
from keras_bert_impl.text.tokenizers.sentence_piece_model import NORMAL, USER_DEFINED, _piece
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import prepare
from keras_bert_impl.text.tokenizers.tokenizer_json import write_portable_file

pytestmark = once

CONTROL = re.compile(r"\[(CLS|SEP|MASK|PAD|UNK)\]|<(s|/s|pad|unk|mask|cls|sep|eod|eop)>")
TEXTS = [
    *(text for text in HOSTILE_TEXTS if len(text) < 1000),
    *SENTENCES,
    "a   b",
    " ``quoted''  text ",
    "(a-b) £5.",
]


@pytest.fixture(params=SENTENCE_PIECE, scope="module")
def tokenizer(request):
    return SENTENCE_PIECE[request.param]()


def comparable(text):
    """Whether transformers gives the originals' ids: it lower-cases sigma otherwise, finds control tokens in texts, and
    takes U+0085 for a space, which XLM-RoBERTa's model does not."""
    return not CONTROL.search(text) and "Σ" not in text and "\x85" not in text


def test_texts_give_the_ids_tokenizer_of_transformers(tokenizer):
    theirs, count = tokenizer_of_transformers(tokenizer), 0
    for text in filter(comparable, TEXTS):
        if tokenizer.published_class == "BigBirdTokenizer":
            text = text.rstrip(" ")  # of spaces at the end, transformers 5 keeps one
        assert tokenizer.encode(text).ids == theirs(text)["input_ids"], text
        count += 1
    assert count > 20
    assert tokenizer.encode("The cat", "Paris").ids == theirs("The cat", "Paris")["input_ids"]


def test_pieces_are_those_of_the_library_and_alone_and_together_the_same(tokenizer):
    library = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        prepared = tokenizer._prepared(text)[0]
        expected = library.encode(prepared, out_type=str)
        if not any(map(tokenizer.is_cut_again, expected)):
            assert [tokenizer.token_to_id(piece) or tokenizer.unk_id for piece in expected] == ids
        assert tokenizer.ids_batch([text, "a"])[0] == ids


def googles_pieces(library, text):
    """`encode_pieces` of google-research/albert's tokenization.py."""
    found = []
    for piece in library.encode(text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = library.encode(piece[:-1].replace("▁", ""), out_type=str)
            if piece[0] != "▁" and parts[0][0] == "▁":
                if len(parts[0]) == 1:
                    parts = parts[1:]
                else:
                    parts[0] = parts[0][1:]
            found.extend([*parts, piece[-1]])
        else:
            found.append(piece)
    return found


def test_a_digit_and_a_comma_are_cut_as_in_googles_code():
    text, tokenizer = "From 2018, to 2019, 12,000 ran; in 2018, and in 2019, 5,000 sat.", tokenizer_that_cuts_pieces()
    library = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    cut = [piece for piece in tokenizer.vocabulary if tokenizer.is_cut_again(piece)]
    found = tokenizer.encode(text, add_special_tokens=False)
    assert not set(found.tokens) & set(cut) and set(library.encode(text.lower(), out_type=str)) & set(cut)
    pieces = googles_pieces(library, text.lower())
    assert found.ids == [tokenizer.token_to_id(piece) or tokenizer.unk_id for piece in pieces]
    assert found.ids == tokenizer.ids_batch([text])[0] and pieces.count(",") == 6
    assert "".join(text[start:end] for start, end in found.offsets) == text.replace(" ", "")


def test_offsets_are_characters_of_the_original_text():
    text = "  The Café ''Zürich'' ﬁn"
    found = albert_tokenizer().encode(text, add_special_tokens=False)
    shown = {text[start:end] for start, end in found.offsets}
    assert "''" in shown and found.offsets[0][0] == 2 and found.offsets[-1][1] == len(text)
    begins = [start for start, _ in found.offsets]
    assert begins == sorted(begins) and not any(
        text[start:end] != text[start:end].strip() for start, end in found.offsets
    )
    numbers = albert_tokenizer().word_numbers(text, found)
    words = {number: "" for number in numbers.tolist()}
    for number, (start, end) in zip(numbers.tolist(), found.offsets, strict=True):
        words[number] += text[start:end]
    assert "".join(words.values()).replace(" ", "") == text.replace(" ", "") and "Café" in words.values()


def test_xlnets_tokens_are_in_the_published_order_and_its_rows_end_in_cls(tmp_path):
    tokenizer = xlnet_tokenizer()
    assert tokenizer.vocabulary[:9] == "<unk> <s> </s> <cls> <sep> <pad> <mask> <eod> <eop>".split()
    ids, found = {"cls": tokenizer.cls_id, "sep": tokenizer.sep_id}, tokenizer.encode("a", "b")
    assert (found.ids[-2:], found.type_ids[-2:]) == ([ids["sep"], ids["cls"]], [1, 2]) and found.type_ids[0] == 0
    assert tokenizer.encode("a").type_ids[-2:] == [0, 2]
    text = "<s> a </s> <eod> <cls> b <eop>"
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert not {1, 2, 3, 7} & set(ids) and tokenizer.token_to_id("<eop>") in ids
    tokenizer.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["padding_side"] == "left"
    (tmp_path / "spiece.model").unlink()
    assert kbi.tokenizers.open_tokenizer(tmp_path).encode(text, add_special_tokens=False).ids == ids


def test_bigbirds_control_tokens_are_text_in_texts_and_its_reserved_names_are_not(tmp_path):
    model = published_bigbird()
    library, tokenizer = sentencepiece.SentencePieceProcessor(model_proto=model), BigBirdTokenizer(model)
    assert tokenizer.vocabulary[:9] == "<pad> </s> <s> <sep_0> [CLS] [SEP] [MASK] <unused_67> <unk>".split()
    assert {4, 5, 6, 2} <= set(library.encode("<s> [CLS] a [SEP] [MASK]"))
    ids = tokenizer.encode("<s> [CLS] a [SEP] [MASK] <sep_0> b<unused_67>", add_special_tokens=False).ids
    assert not {0, 1, 2, 4, 5, 6} & set(ids) and {3, 7} <= set(ids)
    # Of equally probable divisions, the library's; white space that is no space is a character like others.
    for text in ("the cats", " the  cat sat\ton\n mats ", "a<sep_0>b", "漢"):
        assert tokenizer.encode(text, add_special_tokens=False).ids == library.encode(text), text
    tokenizer.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "spiece.model"):  # each file alone, too
        again = kbi.tokenizers.open_tokenizer(tmp_path)
        assert type(again) is BigBirdTokenizer
        for text in ("the cats", "[SEP] <sep_0>a\t<unused_67>", *SENTENCES):
            assert again.encode(text) == tokenizer.encode(text)
        other = tmp_path / name
        other.rename(tmp_path / f"{name}.away")
        if name == "tokenizer.json":
            assert kbi.tokenizers.open_tokenizer(tmp_path) == tokenizer
            (tmp_path / f"{name}.away").rename(other)
    alone = kbi.tokenizers.open_tokenizer(tmp_path)  # of tokenizer.json
    assert alone.encode("the\tcats") == tokenizer.encode("the\tcats")
    assert _piece("▁the", 0.0, NORMAL) in alone.model and _piece("<sep_0>", 0.0, USER_DEFINED) in alone.model


def test_bigbirds_and_alberts_files_of_one_name_are_told_apart(tmp_path):
    for made in (albert_tokenizer, bigbird_tokenizer, xlnet_tokenizer):
        (tmp_path / "spiece.model").write_bytes(made().model)
        assert kbi.tokenizers.kind_in(tmp_path) is type(made())


def test_xlm_robertas_ids_are_fairseqs():
    tokenizer = xlm_roberta_tokenizer()
    assert tokenizer.vocabulary[:4] == ["<s>", "<pad>", "</s>", "<unk>"] and tokenizer.vocabulary[-1] == "<mask>"
    assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id) == (0, 1, 2, 3)
    assert tokenizer.encode("漢", add_special_tokens=False).ids[-1] == tokenizer.unk_id
    with pytest.raises(ValueError, match="The SentencePiece model begins with <pad> <unk> "):
        kbi.tokenizers.XLMRobertaTokenizer(learned_sentence_pieces())
    with pytest.raises(ValueError, match=r"has no <pad>; AlbertTokenizer needs"):
        kbi.tokenizers.AlbertTokenizer(tokenizer.model)


def test_case_and_accents_are_kept_where_asked_for():
    assert prepare("İ Café ``x'' ½", True, False)[0] == 'i cafe "x" 1\u20442'
    assert prepare("Café ΟΔΟΣ", True, True)[0] == "café οδος"
    assert prepare("Café", False, True) == ("Café", [0, 1, 2, 3, 4])
    assert prepare("a\x85b\u2028c\x1cd", True, False)[0] == "a b c d"  # as str.split in Google's code
    assert prepare("``a", True, True) == ('"a', [0, 2, 3])


def test_pieces_read_as_text_fill_masks_and_decode(tokenizer):
    token = next(token for token in tokenizer.vocabulary if token.startswith("▁") and len(token) > 1)
    assert tokenizer.piece_text(tokenizer.token_to_id(token)) == " " + token[1:]
    assert tokenizer.filled_text(f"It is {tokenizer.mask_texts[0]}.", [token]) == f"It is {token[1:]}."
    assert tokenizer.decode(tokenizer.encode("the cat sat on the mat").ids) == "the cat sat on the mat"
    is_continuation = dict(zip(tokenizer.vocabulary, tokenizer.is_continuation, strict=True))
    assert not is_continuation[token] and is_continuation["a"] and not is_continuation[tokenizer.names[0]]


def test_a_portable_file_gives_the_same_ids_but_for_what_its_docstring_names(tokenizer, tmp_path):
    write_portable_file(tokenizer, tmp_path / "tokenizer.json", 10**6, masks=True)
    read = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        if "Σ" not in text and tokenizer.mask_texts[0] not in text and "\x85" not in text:
            assert read.encode(text).ids == tokenizer.encode(text).ids, text
    for text in ("[CLS] a [SEP]", "<s>a</s> <pad><unk>"):
        assert read.encode(text).ids == tokenizer.encode(text).ids
    pair = read.encode("The cat", "Paris")
    assert (pair.ids, pair.type_ids) == tuple(
        getattr(tokenizer.encode("The cat", "Paris"), n) for n in ("ids", "type_ids")
    )
    text = f"It is {tokenizer.mask_texts[0]}."
    assert read.encode(text).ids == tokenizer.encode_with_masks(text).ids


def test_camembert_has_ids_of_its_own_before_the_pieces_and_opens_in_transformers(tmp_path):
    tokenizer, other = camembert_tokenizer(), xlm_roberta_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert type(theirs).__name__ == "CamembertTokenizer"
    for text in [*SENTENCES, "漢 x"]:
        expected = [index + 4 if index else 3 for index in other.processor.encode(text, out_type=int)]
        assert tokenizer.encode(text).ids == [5, *expected, 6] == theirs(text)["input_ids"]
    (tmp_path / "tokenizer.json").unlink()  # as the authors' files are
    assert type(open_tokenizer(tmp_path)) is CamembertTokenizer
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "camembert"}')
    assert open_tokenizer(tmp_path) == tokenizer
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    assert type(open_tokenizer(tmp_path)) is type(other)
