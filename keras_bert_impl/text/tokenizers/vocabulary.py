"""Reads, checks and writes vocabularies, and learns them from text."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, trainers

from keras_bert_impl.json_files import written_whole
from keras_bert_impl.text.tokenizers import google_characters
from keras_bert_impl.text.tokenizers.tokenizer_json import SPECIAL_TOKENS, read_lines, read_tokens

# Words with a character outside the alphabet become [UNK]. It holds the most frequent characters: 1,000, as many as
# Google's uncased vocabulary (997), and as many more as are needed to cover this share of the text: thousands
# in Chinese.
# How a checkpoint is used whose tokenizer this library does not have.
OTHER_TOKENIZER = (
    "To use the model, open its encoder with kbi.encoder_from_pretrained, put a head on it, and pass the token ids of "
    "transformers' AutoTokenizer."
)
ALPHABET_SIZE = 1000
ALPHABET_COVERAGE = 0.9995


def read_vocabulary(path: str | Path) -> list[str]:
    """The tokens of a vocab.txt, one per line; a token's id is its line number, counted from 0.

    A path that ends in .json is a tokenizer.json of the `tokenizers` library.

    Raises: FileNotFoundError; ValueError if the ids of a tokenizer.json have gaps.
    """
    path = Path(path)
    if path.suffix == ".json":
        return read_tokens(path)
    return list(read_lines(path))


def write_vocabulary(path: str | Path, tokens: Sequence[str]) -> None:
    """Writes one token per line; the file is replaced at once, so that no reader ever sees a part of it."""
    with written_whole(path) as file:
        file.writelines(f"{token}\n" for token in tokens)


def learn_vocabulary(texts: Iterable[str], vocabulary_size: int, lowercase: bool = True) -> list[str]:
    """Learns a WordPiece vocabulary, as BERT's, from texts. The same texts give the same tokens.

    It uses the trainer of the `tokenizers` library: byte-pair merges by frequency, where tokens inside a word start
    with "##". Google did not publish its own.

    Args:
        texts (iterable of str): lines, paragraphs or documents; read once, and kept in a temporary file meanwhile.
        vocabulary_size (int): number of tokens, including five control tokens. Few texts give fewer.
        lowercase (bool, optional): whether the tokenizer will lower-case. Default: True.

    Returns: a list of tokens: control tokens, characters, characters inside a word, then merges in the order of
        learning.

    Example:
        >>> words = kbi.tokenizers.learn_vocabulary(["a cat sat on a mat"] * 9, 30)
        >>> tokenizer = kbi.WordPieceTokenizer(words)
        >>> words[:6]
        ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'a']
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as lines:
        counts = _write_normalized(texts, lowercase, lines)
        alphabet = _alphabet(counts, vocabulary_size - len(SPECIAL_TOKENS))
        lines.seek(0)
        return _merge_pairs(lines, alphabet, vocabulary_size)


def _write_normalized(texts, lowercase, file):
    """Writes the texts as the tokenizer reads them; returns how often each character occurs."""
    exact = google_characters.exact_normalizer(lowercase)
    counts: Counter[str] = Counter()
    for text in texts:
        if not google_characters.is_plain(text):
            text = exact.normalize_str(text)
        elif lowercase:
            text = text.lower()
        counts.update(text)
        file.write(f"{text}\n")
    return counts


def _alphabet(counts, room):
    """The most frequent characters, sorted: 1,000, more if the coverage requires it, fewer if `room` is too small.

    A character takes two tokens, one at the start of a word and one inside; punctuation and CJK characters, which are
    words of their own, take one.
    """
    for space in " \t\r\n":
        del counts[space]
    alone = google_characters.isolated_characters()
    wanted = ALPHABET_COVERAGE * counts.total()
    alphabet, covered = [], 0
    for character in sorted(counts, key=lambda character: (-counts[character], character)):
        if len(alphabet) >= ALPHABET_SIZE and covered >= wanted:
            break
        room -= 1 if character in alone else 2
        if room < 0:
            break
        alphabet.append(character)
        covered += counts[character]
    return sorted(alphabet)


def _merge_pairs(lines, alphabet, vocabulary_size):
    # The trainer numbers the characters inside words in the order of a randomly seeded hash map and breaks ties between
    # pairs by these numbers. Declared as special tokens, they get the same numbers in every run.
    alone = google_characters.isolated_characters()
    inside = [f"##{character}" for character in alphabet if character not in alone]
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.pre_tokenizer = google_characters.exact_pre_tokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[*SPECIAL_TOKENS, *inside],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    ids = learner.get_vocab()
    first = [*SPECIAL_TOKENS, *alphabet, *inside]
    return first + sorted(ids.keys() - set(first), key=ids.get)


def is_cased(vocabulary: Sequence[str]) -> bool:
    """Whether a vocabulary was made from text with upper-case letters: one word in a hundred, such as "The", is one
    that lower-cased text never holds. Of the published cased vocabularies it is about every third, of the others none.
    """
    words = [token.removeprefix("##") for token in vocabulary]
    return sum(word.isalpha() and word.lower() != word for word in words) > len(words) / 100
