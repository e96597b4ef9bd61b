"""A tokenizer.json with which the `tokenizers` library alone gives the ids of our tokenizer, in any language it has."""

from pathlib import Path


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
    portable = tokenizer.pipeline(masks)
    portable.enable_padding(pad_id=tokenizer.pad_id, pad_token=tokenizer.id_to_token(tokenizer.pad_id))
    if stride is None:
        portable.enable_truncation(sequence_length, strategy="longest_first")
    else:
        portable.enable_truncation(sequence_length, stride=stride, strategy="only_second")
    portable.save(str(path), pretty=False)
