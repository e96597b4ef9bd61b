"""Languages of very different size, sampled more evenly for the vocabulary and for the rows of a multilingual model."""

import hashlib
import pathlib

from keras_bert_impl.text.corpora.numbered_lines import COMPRESSIONS
from keras_bert_impl.text.corpora.text_files import COMPRESSION_RATIO


def sampling_factors(sizes, exponent):
    """How often the text of each language is used: more than once for a small language, in part for a large one.

    Follows google-research/bert's multilingual.md, which calls it "exponentially smoothed weighting of the data during
    both pre-training data creation and WordPiece vocab creation": the share p of a language becomes p ** 0.7, and the
    results are normalised, so that a language of a thousand times the text is sampled about a hundred times as often.
    It does not say how much is sampled; here it is as much as there is, so the factor is the new share over the old.

    Args:
        sizes: dict of language to its size, in any unit.
        exponent: multilingual BERT: 0.7; 1 changes nothing, 0 gives every language the same share.

    Returns: dict of language to factor.
    """
    total = sum(sizes.values())
    smoothed = {language: (size / total) ** exponent for language, size in sizes.items()}
    return {language: smoothed[language] / sum(smoothed.values()) * total / size for language, size in sizes.items()}


def language_sizes(files):
    """The bytes of text in each folder of a corpus: dict of the folder's name, which stands for a language, to bytes.

    Args:
        files: pairs (name relative to the corpus, path). A compressed file counts as three times its size.

    Raises: ValueError if a file is in no folder, or there are fewer than two folders.
    """
    sizes = {}
    for name, path in files:
        language, *rest = pathlib.PurePosixPath(name).parts
        ratio = COMPRESSION_RATIO if name.endswith(COMPRESSIONS) else 1
        language = language if rest else None
        sizes[language] = sizes.get(language, 0) + ratio * pathlib.Path(path).stat().st_size
    sizes = {language: size for language, size in sizes.items() if size}
    if len(sizes) < 2 or None in sizes:
        raise ValueError("language_exponent needs a folder for each of at least two languages, and no other files.")
    return sizes


def copies_of(document, factors, seed):
    """How many times a document is used: the factor of its language, rounded up or down at random, so that the mean is
    the factor. The name alone decides, as in `corpora.split_of`."""
    whole, rest = divmod(factors.get(document.source, 1.0), 1)
    digest = hashlib.blake2b(f"copies/{seed}/{document.name}".encode(), digest_size=8).digest()
    return int(whole) + (int.from_bytes(digest, "big") / 2**64 < rest)
