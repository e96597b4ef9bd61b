"""A tokenizer.json with which the `tokenizers` library alone gives the ids of our tokenizer, in any language it has.

The library's own BertNormalizer is not used: on final sigma, private-use characters and others its ids are not
Google's. `ExactNormalizer`, which is, runs in Python and cannot be written to a file. The steps here are regular
expressions and the library's tables for lower-casing and decomposition. They differ from ours for 56 characters, all
assigned after Unicode 14 of 2021, which the library's newer tables lower-case or decompose.
"""

from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from keras_bert_impl.text.tokenizers import google_characters, google_pipeline
from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_impl.text.tokenizers.deberta_tokenizer import DebertaTokenizer
from keras_bert_impl.text.tokenizers.mmbert_tokenizer import MmBertTokenizer
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import ModernBertTokenizer
from keras_bert_impl.text.tokenizers.sentence_piece_file import AT_SPACES
from keras_bert_impl.text.tokenizers.sentence_piece_model import SPACE, character_map
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import AlbertTokenizer
from keras_bert_impl.text.tokenizers.wordpiece_tokenizer import post_processor


def write_portable_file(tokenizer, path: str | Path, sequence_length: int, masks=False, stride=None) -> None:
    """Writes a tokenizer.json that adds control tokens, cuts rows, and pads them to the longest of a batch.

    A cut pair can have one token less of its first text and one more of its second than here, if both have to be cut:
    the library and Google's code divide an odd number of tokens differently.

    Args:
        tokenizer: a Tokenizer.
        path: the file.
        sequence_length: tokens of the longest row.
        masks: whether the name of the mask token, "[MASK]" or "<mask>", in a text is that token.
        stride: tokens that two windows over a long second text have in common; the library returns the further windows
            as `overflowing`. None cuts the longer text.
    """
    portable = PIPELINES[tokenizer.kind](tokenizer, masks)
    portable.enable_padding(pad_id=tokenizer.pad_id, pad_token=tokenizer.id_to_token(tokenizer.pad_id))
    if stride is None:
        portable.enable_truncation(sequence_length, strategy="longest_first")
    else:
        portable.enable_truncation(sequence_length, stride=stride, strategy="only_second")
    portable.save(str(path), pretty=False)


def portable_wordpiece(tokenizer, masks: bool) -> Tokenizer:
    """A WordPieceTokenizer as a pipeline that a file can hold."""
    model = models.WordPiece(
        {token: index for index, token in enumerate(tokenizer.vocabulary)},
        unk_token=tokenizer.id_to_token(tokenizer.unk_id),
        max_input_chars_per_word=google_characters.MAX_CHARACTERS_PER_WORD,
    )
    portable = Tokenizer(model)
    portable.normalizer = portable_normalizer(tokenizer.lowercase)
    portable.pre_tokenizer = google_pipeline.exact_pre_tokenizer()
    portable.post_processor = post_processor(tokenizer)
    if masks:
        portable.add_special_tokens([AddedToken(tokenizer.mask_texts[0], special=True, normalized=False)])
    return portable


def portable_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """`google_pipeline.ExactNormalizer` in steps that a file can hold."""

    def replace(ranges, replacement):
        return normalizers.Replace(Regex(f"[{google_characters.character_class(ranges)}]"), replacement)

    steps = [replace(google_characters.DROPPED, ""), replace(google_characters.SPACES, " ")]
    if lowercase:
        # The library lower-cases each character for itself and knows no final sigma.
        before, after = google_characters.BEFORE_FINAL_SIGMA, google_characters.AFTER_FINAL_SIGMA
        steps.insert(0, normalizers.Replace(Regex(rf"{before}\KΣ(?={after})"), "ς"))
        steps += [normalizers.Lowercase(), normalizers.NFD(), replace(google_characters.NONSPACING_MARKS, "")]
    return normalizers.Sequence(steps)


def portable_sentence_pieces(tokenizer, masks: bool) -> Tokenizer:
    """A tokenizer over a SentencePiece model as a pipeline that a file can hold.

    It differs from the tokenizer where the library does: characters of Unicode that it lower-cases or decomposes
    otherwise, final sigma, and pieces that end in a digit and a comma, which it makes unlikely instead of cutting them.
    """
    # The library would find the names of control tokens in texts: a private character before them keeps them apart.
    hidden = {name: f"\ue000{name}" for name in (*tokenizer.names, *tokenizer.further_controls)}
    if masks:
        del hidden[tokenizer.names[-1]]
    tokens = [hidden.get(token, token) for token in tokenizer.vocabulary]
    scores = [
        score - 100 * tokenizer.is_cut_again(token) for token, score in zip(tokens, tokenizer.scores(), strict=True)
    ]
    pieces, has_bytes = list(zip(tokens, scores, strict=True)), bool(tokenizer.bytes_of)
    portable = Tokenizer(models.Unigram(pieces, unk_id=tokenizer.unk_id, byte_fallback=has_bytes))
    table = character_map(tokenizer.model)
    steps = [*_preparation(tokenizer), *([normalizers.Precompiled(table)] if table else [])]
    portable.normalizer = normalizers.Sequence(steps)
    at_spaces = pre_tokenizers.Split(" ", "removed")
    portable.pre_tokenizer = pre_tokenizers.Sequence(
        [
            at_spaces if tokenizer.split == AT_SPACES else pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always"),
        ]
    )
    before, between, after, segment, _ = tokenizer.template

    def control(slot, segment=0):
        segments = tokenizer.template.segments_of(slot, segment)
        return [f"{name}:{own}" for name, own in zip(slot, segments, strict=True)]

    portable.post_processor = processors.TemplateProcessing(
        single=[*before, "$A", *control(after)],
        pair=[*before, "$A", *between, f"$B:{segment}", *control(after, segment)],
        special_tokens=[("cls", tokenizer.cls_id), ("sep", tokenizer.sep_id)],
    )
    if masks:
        portable.add_special_tokens([AddedToken(tokenizer.names[-1], special=True, normalized=False, lstrip=True)])
    return portable


def _preparation(tokenizer):
    """`sentence_piece_tokenizer.prepare` in steps of the library."""
    if not isinstance(tokenizer, AlbertTokenizer):
        return []
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    steps += [] if tokenizer.keep_accents else [normalizers.NFKD(), normalizers.StripAccents()]
    return steps + [normalizers.Lowercase()] * tokenizer.lowercase


# By the kind of tokenizer: a function from it, and whether texts hold masks, to such a pipeline.
PIPELINES = {
    "wordpiece": portable_wordpiece,
    "mpnet_wordpiece": portable_wordpiece,
    "byte_pair": BytePairTokenizer.pipeline,
    "modernbert_byte_pair": ModernBertTokenizer.pipeline,
    "mmbert_byte_pair": MmBertTokenizer.pipeline,
    "deberta_byte_pair": DebertaTokenizer.pipeline,
    "sentence_piece": portable_sentence_pieces,
    "xlm_sentence_piece": portable_sentence_pieces,
    "deberta_sentence_piece": portable_sentence_pieces,
    "xlnet_sentence_piece": portable_sentence_pieces,
    "bigbird_sentence_piece": portable_sentence_pieces,
}
