"""Small tokenizers of every kind but WordPiece, learned from a few sentences."""

import functools
import io
import json

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from keras_bert_impl.text.tokenizers import (
    AlbertTokenizer,
    BigBirdTokenizer,
    BytePairTokenizer,
    CamembertTokenizer,
    DebertaTokenizer,
    DebertaV2Tokenizer,
    EuroBertTokenizer,
    MmBertTokenizer,
    ModernBertTokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
    learn_byte_pairs,
    learn_sentence_pieces,
)
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import DEBERTA, EUROBERT, LLAMA_WORDS, MODERNBERT
from keras_bert_impl.text.tokenizers.sentence_piece_model import (
    BIGBIRD,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    XLNET,
    _encoded_model,
)
from keras_bert_impl.text.tokenizers.sentence_piece_model import CONTROL as CONTROL_PIECE
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import prepare

CONTROL = ("PAD", "CLS", "SEP", "UNK")
SENTENCES = [
    "The cat sat on the mat in the rain.",
    "Two dogs ran; the red dog is good, the blue cat is bad!",
    "Café Zürich isn't closed: naïve visitors from Paris said so.",
    "The capital of France is Paris, and that of Switzerland is Bern.",
    "  In 2018,  Google released BERT.  ",
    "From 2018, to 2019, 12,000 of them ran; in 2018, and in 2019, 5,000 sat.",
]


@functools.cache
def learned_byte_pairs():
    return learn_byte_pairs(SENTENCES * 3, 400)


def byte_pair_tokenizer(add_prefix_space=False):
    """A BytePairTokenizer of 400 tokens at most."""
    return BytePairTokenizer(*learned_byte_pairs(), add_prefix_space=add_prefix_space)


@functools.cache
def modernbert_tokenizer(add_prefix_space=False, added_tokens=("   ", "  ", "<|mail|>", "[unused0]")):
    """A ModernBertTokenizer of 400 tokens at most."""
    vocabulary, merges = learn_byte_pairs(SENTENCES * 3, 400, MODERNBERT, added_tokens)
    return ModernBertTokenizer(vocabulary, merges, add_prefix_space, added_tokens)


# As Gemma's tokenizer has them: runs of line ends and of spaces, and tags.
ADDED = ("<unused0>", "\n", "\n\n", "\n\n\n", "▁▁", "▁▁▁", "<h1>", "</h1>")


@functools.cache
def eurobert_tokenizer(added_tokens=("<|mail|>",), **arguments):
    """A EuroBertTokenizer of some 500 tokens, one of which no merges make."""
    control = EUROBERT.control
    learner = Tokenizer(models.BPE())
    of_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    learner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA_WORDS), "isolated"), of_bytes])
    trainer = trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    learner.train_from_iterator(SENTENCES * 3, trainer)
    model = json.loads(learner.to_str())["model"]
    vocabulary = [*sorted(model["vocab"], key=model["vocab"].get), "ĠParisian", *dict.fromkeys(control), *added_tokens]
    return EuroBertTokenizer(vocabulary, model["merges"], added_tokens=added_tokens, **arguments)


def mmbert_tokenizer(added_tokens=ADDED):
    """An MmBertTokenizer whose vocabulary SentencePiece learned as Gemma's was, with merges as transformers makes them
    of it."""
    import sentencepiece
    from transformers.convert_slow_tokenizer import generate_merges

    model = io.BytesIO()
    ids = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}
    names = {"pad_piece": "<pad>", "eos_piece": "<eos>", "bos_piece": "<bos>", "unk_piece": "<unk>"}
    sentencepiece.SentencePieceTrainer.train(
        **{"sentence_iterator": iter(SENTENCES * 3), "model_writer": model, **ids, **names, "model_type": "bpe"},
        **{"vocab_size": 500, "hard_vocab_limit": False, "minloglevel": 2, "byte_fallback": True},
        **{"user_defined_symbols": ["<mask>", *ADDED], "normalization_rule_name": "identity"},
        **{"add_dummy_prefix": False, "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
        split_digits=True,
    )
    learned = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [learned.id_to_piece(index) for index in range(learned.get_piece_size())]
    pieces[pieces.index("<0x09>")] = "\t"  # as transformers does for Gemma
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    scores = {piece: learned.get_score(index) for piece, index in vocabulary.items()}
    return MmBertTokenizer(pieces, generate_merges(vocabulary, scores), added_tokens)


@functools.cache
def deberta_v1_tokenizer(add_prefix_space=False):
    """A DebertaTokenizer of 400 tokens at most."""
    return DebertaTokenizer(*learn_byte_pairs(SENTENCES * 3, 400, DEBERTA), add_prefix_space)


@functools.cache
def learned_sentence_pieces():
    return learn_sentence_pieces(SENTENCES * 3, 150, lambda text: prepare(text, True, False)[0])


def albert_tokenizer(**options):
    """An AlbertTokenizer of 150 tokens at most."""
    return AlbertTokenizer(learned_sentence_pieces(), **options)


def tokenizer_that_cuts_pieces():
    """An AlbertTokenizer whose model has pieces that end in a digit and a comma."""
    import sentencepiece

    text, model = "from 2018, to 2019, 12,000 ran; in 2018, and in 2019, 5,000 sat.", io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text, "2018 2019"] * 9),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        user_defined_symbols=["2018,", "▁2019,"],
        minloglevel=2,
    )
    return AlbertTokenizer(model.getvalue())


@functools.cache
def xlnet_tokenizer(**options):
    """An XLNetTokenizer of 170 tokens at most."""
    model = learn_sentence_pieces(SENTENCES * 3, 170, lambda text: prepare(text, False, False)[0], XLNET)
    return XLNetTokenizer(model, **options)


@functools.cache
def bigbird_tokenizer():
    """A BigBirdTokenizer of 150 tokens at most."""
    return BigBirdTokenizer(learn_sentence_pieces(SENTENCES * 3, 150, not_learned=BIGBIRD))


@functools.cache
def published_bigbird():
    """The content of a model in the form of BigBird's published one: all scores 0, [CLS] and others found in texts."""
    names = "<pad> </s> <s> <sep_0> [CLS] [SEP] [MASK] <unused_67> <unk>".split()
    kinds = {"<pad>": CONTROL_PIECE, "</s>": CONTROL_PIECE, "<unk>": UNKNOWN}
    letters = sorted(set("".join(SENTENCES)) - {" "} | set("[]<>_/0"))
    words = ["▁", "▁the", "the", "▁cat", "▁cats", "cat", "s", "ts", "▁sat", "▁on", "▁m", "ats", "at"]
    pieces = [*names, *dict.fromkeys([*letters, *words])]
    typed = [(piece, 0.0, kinds.get(piece, USER_DEFINED if piece in names else NORMAL)) for piece in pieces]
    return _encoded_model(typed, ("<unk>", "", "</s>", "<pad>"), has_bytes=False)


@functools.cache
def camembert_tokenizer():
    return CamembertTokenizer(xlm_roberta_tokenizer().model)


@functools.cache
def xlm_roberta_tokenizer():
    """An XLMRobertaTokenizer over a model with the control tokens of the published one."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 3), model_writer=model, vocab_size=150, hard_vocab_limit=False, minloglevel=2
    )
    return XLMRobertaTokenizer(model.getvalue())


@functools.cache
def deberta_tokenizer(byte_fallback=True):
    """A DebertaV2Tokenizer over a model with the control tokens of the published one."""
    import sentencepiece

    model = io.BytesIO()
    names = {f"{name}_piece": f"[{token}]" for name, token in zip(("pad", "bos", "eos", "unk"), CONTROL, strict=True)}
    ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
    options = {"vocab_size": 420, "hard_vocab_limit": False, "minloglevel": 2, "byte_fallback": byte_fallback}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 3), model_writer=model, **names, **ids, **options
    )
    return DebertaV2Tokenizer(model.getvalue())


def tokenizer_of_transformers(tokenizer):
    """The tokenizer of transformers over the pieces of an AlbertTokenizer or XLMRobertaTokenizer, as its converters
    build it."""
    import transformers

    from keras_bert_impl.text.tokenizers.sentence_piece_model import character_map

    scores = [
        score - 100 * tokenizer.is_cut_again(token)
        for token, score in zip(tokenizer.vocabulary, tokenizer.scores(), strict=True)
    ]
    vocabulary = list(zip(tokenizer.vocabulary, scores, strict=True))
    kind = getattr(transformers, tokenizer.published_class)
    return kind(vocab=vocabulary, _spm_precompiled_charsmap=character_map(tokenizer.model))


SENTENCE_PIECE = {
    "albert": albert_tokenizer,
    "xlm_roberta": xlm_roberta_tokenizer,
    "xlnet": xlnet_tokenizer,
    "bigbird": bigbird_tokenizer,
}
