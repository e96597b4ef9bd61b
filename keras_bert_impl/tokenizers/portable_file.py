"""A tokenizer.json with which the `tokenizers` library alone gives the ids of our tokenizer, in any language it has.

The library's own BertNormalizer is not used: on final sigma, private-use characters and others its ids are not
Google's. `ExactNormalizer`, which is, runs in Python and cannot be written to a file. The steps here are regular
expressions and the library's tables for lower-casing and decomposition. They differ from ours for 56 characters, all
assigned after Unicode 14 of 2021, which the library's newer tables lower-case or decompose.
"""

from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, processors

from keras_bert_impl.tokenizers import google_characters, google_pipeline


def write_portable_file(tokenizer, path: str | Path, sequence_length: int, masks=False, stride=None) -> None:
    """Writes a tokenizer.json that adds [CLS] and [SEP], cuts rows, and pads them to the longest of a batch.

    A cut pair can have one token less of its first text and one more of its second than here, if both have to be cut:
    the library and Google's code divide an odd number of tokens differently.

    Args:
        tokenizer: a WordPieceTokenizer.
        path: the file.
        sequence_length: tokens of the longest row.
        masks: whether "[MASK]" in a text is the mask token.
        stride: tokens that two windows over a long second text have in common; the library returns the further windows
            as `overflowing`. None cuts the longer text.
    """
    model = models.WordPiece(
        {token: index for index, token in enumerate(tokenizer.vocabulary)},
        unk_token="[UNK]",
        max_input_chars_per_word=google_characters.MAX_CHARACTERS_PER_WORD,
    )
    portable = Tokenizer(model)
    portable.normalizer = portable_normalizer(tokenizer.lowercase)
    portable.pre_tokenizer = google_pipeline.exact_pre_tokenizer()
    portable.post_processor = processors.BertProcessing(("[SEP]", tokenizer.sep_id), ("[CLS]", tokenizer.cls_id))
    if masks:
        portable.add_special_tokens([AddedToken("[MASK]", special=True, normalized=False)])
    portable.enable_padding(pad_id=tokenizer.pad_id, pad_token="[PAD]")
    if stride is None:
        portable.enable_truncation(sequence_length, strategy="longest_first")
    else:
        portable.enable_truncation(sequence_length, stride=stride, strategy="only_second")
    portable.save(str(path), pretty=False)


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
