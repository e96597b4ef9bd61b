"""Made-up documents, and their tokens as the jobs of `preprocessing.shards` read them."""

import itertools

import numpy as np
from conftest import WORDS

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.text.corpora import Document
from keras_bert_impl.text.ragged import Ragged
from keras_bert_impl.text.rows.masking import MaskingRule, NextTokens
from keras_bert_impl.text.rows.numpy_data import RowFiles, TrainingBatches
from keras_bert_impl.text.rows.pretraining_rows import RowFormat, write_rows

TOKENIZER = WordPieceTokenizer(WORDS)


def documents(count):
    random = np.random.default_rng(0)
    words = [word for word in WORDS[5:] if word.isalpha()]
    for number in range(count):
        sentences = [" ".join(random.choice(words, random.integers(3, 9))) for _ in range(random.integers(2, 9))]
        yield Document(name=f"document {number}", source="test", sentences=sentences)


def tokens(count):
    """`Ragged` (documents, sentences, tokens)."""
    texts = [document.sentences for document in documents(count)]
    rows = [TOKENIZER.encode(sentence, add_special_tokens=False).ids for sentences in texts for sentence in sentences]
    return Ragged(ragged(rows), np.array([len(sentences) for sentences in texts]))


def ragged(rows, dtype=np.int32):
    """Lists of numbers, or lists of lists of them, as `Ragged`."""
    lengths = np.array([len(row) for row in rows], np.int64)
    inner = [value for row in rows for value in row]
    return Ragged(ragged(inner, dtype) if inner and isinstance(inner[0], list) else np.array(inner, dtype), lengths)


def ids_one_by_one(tokenizer, texts):
    """The ids of each text by the tokenizers library, as `Ragged`."""
    return ragged([tokenizer.encode(text, add_special_tokens=False).ids for text in texts])


def write(path, documents, tokenizer=TOKENIZER, number=0, **options):
    """Writes a file of rows, with the options of its RowFormat by name."""
    return write_rows(path, documents, tokenizer, RowFormat(**options), number=number)


def opened(paths, tokenizer=TOKENIZER, num_examples=None, **options):
    """The `TrainingBatches` of files, with the options of their RowFormat and of the masking by name."""

    def taken(names):
        return {name: options.pop(name) for name in names if name in options}

    rows = RowFormat(**taken(("sequence_length", "predictions_per_sequence", "static_masks", "packed")))
    rates = taken(("masking_rate", "mask_token_rate", "random_token_rate"))
    unit, direction = options.pop("masking_unit", "token"), options.pop("direction", None)
    masking = MaskingRule(tokenizer, rows.predictions_per_sequence, options.get("seed", 0), unit, **rates)
    masking = NextTokens(direction) if direction else None if rows.static_masks else masking
    return TrainingBatches(RowFiles(paths, tokenizer, rows, num_examples), masking, **options)


def lists(rows):
    """The reverse of `ragged`."""
    inner = lists(rows.values) if isinstance(rows.values, Ragged) else rows.values.tolist()
    return [inner[start:end] for start, end in itertools.pairwise(rows.offsets.tolist())]
