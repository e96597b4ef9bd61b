"""Changes the size of a checkpoint: more or fewer positions, more words."""

import dataclasses
import functools

import numpy as np

from keras_bert_impl.checkpoints.tensor_tables import Checkpoint
from keras_bert_impl.text.tokenizers import WordPieceTokenizer

# Weights with a row for each word.
BY_WORD = ("token_embedding/embeddings", "masked_lm_head/decoder/embeddings", "masked_lm_head/output_bias")


def grow(checkpoint, max_length=None, new_words=()):
    """Changes the size of a checkpoint: more positions, or more words. Added weights need training.

    Args:
        checkpoint (Checkpoint): the result of `open_checkpoint`.
        max_length (int, optional): number of positions. More positions repeat the trained ones from the first, which
            keeps neighbours close (Beltagy et al. 2020, "Longformer", section 5); fewer keep the first. Default: None,
            unchanged.
        new_words (list of str, optional): words to append to the vocabulary, each a single token, which starts as the
            mean of all trained words, in the embedding and in the output bias. Default: none.

    Returns: a `Checkpoint` for any `from_pretrained`; the files are not changed.
    Raises: ValueError for words that the tokenizer can never produce, or for words without a WordPieceTokenizer.

    Example:
        >>> checkpoint = kbi.checkpoints.open_checkpoint("small_english")
        >>> grown = kbi.checkpoints.grow(checkpoint, max_length=256)
        >>> kbi.BertEncoder.from_pretrained(grown).config.max_length
        256
    """
    old = checkpoint.config
    read_tokenizer, vocabulary_size = _with_words(checkpoint, list(new_words))
    config = dataclasses.replace(old, max_length=max_length or old.max_length, vocabulary_size=vocabulary_size)
    repeated = functools.partial(_repeated, unused=config.num_positions - config.max_length)
    wanted = {
        "position_embedding/embeddings": (config.num_positions, repeated),
        "decoder_positions/embeddings": (config.max_length, _repeated),
        **dict.fromkeys(BY_WORD, (config.vocabulary_size, _with_means)),
    }
    return checkpoint._replace(config=config, read_tokenizer=read_tokenizer, source=_resized(checkpoint, wanted))


def _with_words(checkpoint, new_words):
    """A function that returns the tokenizer with the words, and the number of rows that the embedding needs."""
    if not new_words:
        return checkpoint.read_tokenizer, checkpoint.config.vocabulary_size
    old = checkpoint.tokenizer
    if not isinstance(old, WordPieceTokenizer):  # in another vocabulary each piece is made of others
        raise ValueError(
            f"{checkpoint.source.path} has a {type(old).__name__} as its tokenizer: words can be added to a "
            "WordPieceTokenizer only."
        )
    vocabulary = old.vocabulary
    # An embedding may have more rows than words: new words follow the last row, unused entries fill the gap.
    gap = [f"[unused-row-{row}]" for row in range(len(vocabulary), checkpoint.config.vocabulary_size)]
    words = [*vocabulary, *gap, *new_words]
    tokenizer = type(old)(words, old.lowercase, old.added_tokens)
    for word in new_words:
        pieces = tokenizer.encode(word, add_special_tokens=False).tokens
        if pieces != [word]:
            raise ValueError(
                f"{word!r} would never be found: the tokenizer turns it into {' '.join(pieces)!r} before it looks up "
                "words. Add a word as it is after lower-casing and splitting at punctuation."
            )
    return lambda: tokenizer, len(words)


def _resized(checkpoint: Checkpoint, wanted):
    """The tensors, some with another first dimension: `wanted` is path -> (size, function from array and size)."""
    by_tensor = {name: wanted[path] for path, names, _ in checkpoint.rows if path in wanted for name in names}
    source = checkpoint.source
    shapes = {
        name: (by_tensor[name][0], *shape[1:]) if name in by_tensor else shape for name, shape in source.shapes.items()
    }

    def read(name):
        array = source.read(name)
        if name not in by_tensor:
            return array
        size, resize = by_tensor[name]
        return resize(array, size)

    return source._replace(shapes=shapes, read=read)


def _repeated(array, size, unused=0):
    """The rows of a table repeated from the first that is a position; `unused` rows stand before it."""
    positions = array[unused:]
    return np.concatenate([array[:unused], positions[np.arange(size - unused) % len(positions)]])


def _with_means(array, size):
    mean = np.mean(array, axis=0, keepdims=True, dtype="float64").astype(array.dtype)
    return np.concatenate([array, np.repeat(mean, size - len(array), axis=0)])
