"""The chain of pre-training data: documents to examples on disk, and examples to batches.

documents -> WordPiece -> sentence pairs -> truncate -> pack -> TFRecord      `write_examples`
TFRecord  -> shuffle   -> mask           -> batch                            `read_training_data`
"""

import itertools
import pathlib
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from keras_bert_impl import features
from keras_bert_impl.preprocessing.examples import (
    read_masked_examples,
    read_packed_examples,
    read_unmasked_examples,
    write_masked_examples,
    write_packed_examples,
    write_unmasked_examples,
)
from keras_bert_impl.preprocessing.masking import mask_tokens
from keras_bert_impl.preprocessing.next_sentence import chunk_documents, pair_segments
from keras_bert_impl.preprocessing.packing import pack, truncate_pairs_at_random
from keras_bert_impl.preprocessing.row_packing import assign_rows, most_sequences
from keras_bert_impl.preprocessing.wordpiece import WordPiece

BLOCK_BYTES = 8_000_000  # text held at once: random second sentences come from the same block
ROWS_AT_ONCE = 4096


def write_examples(
    documents: Iterable,
    tokenizer,
    directory,
    *,
    sequence_length,
    predictions_per_sequence,
    duplicates=1,
    static_masks=False,
    short_sequence_probability=0.1,
    packed=False,
    seed=0,
    on_block=lambda documents, examples: None,
):
    """Turns documents into files of pre-training examples, block by block, never holding more than one block.

    Args:
        documents: iterable of `corpora.Document`.
        tokenizer: a WordPieceTokenizer.
        directory: gets `examples-00000.tfrecord`, ...: one file a block and duplicate.
        sequence_length: tokens of a row, [CLS], [SEP] and padding included.
        predictions_per_sequence: most predictions of a row; used for static masks.
        duplicates: how often the text is cut into pairs, differently each time (Google's `dupe_factor`).
        static_masks: masks now, in google-research/bert's format, rather than anew in every epoch.
        short_sequence_probability: share of documents cut into shorter pairs; 0.1 in Google's code.
        packed: puts several pairs in a row, so that hardly a position is padding; see `row_packing`.
        seed: of every random choice.
        on_block: called with the documents and examples written so far.

    Returns: (documents read, examples written).
    Raises: ValueError if there are fewer than two documents, or static masks are wanted in packed rows.
    """
    if packed and static_masks:
        raise ValueError("Google's format has no packed rows: leave static_masks or packed out.")
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    wordpiece = WordPiece(tokenizer)
    num_documents = num_examples = 0
    for block_index, block in enumerate(_blocks(documents)):
        token_lists = _tokenize(wordpiece, block)
        for copy in range(duplicates):
            number = block_index * duplicates + copy
            rows = _pack_block(token_lists, tokenizer, sequence_length, short_sequence_probability, seed, number)
            rows["example_index"] = tf.range(len(rows["token_ids"]), dtype=tf.int64) + num_examples
            path = directory / f"examples-{number:05d}.tfrecord"
            if packed:
                lengths = tf.reduce_sum(rows["padding_mask"], axis=1).numpy()
                shared = assign_rows(lengths, sequence_length, most_sequences(sequence_length))
                np.random.default_rng((seed, number)).shuffle(shared)
                num_examples += write_packed_examples(path, shared, rows, num_examples)
            elif static_masks:
                masking = masking_arguments(tokenizer, predictions_per_sequence, seed)
                batches = (mask_tokens(batch, epoch=0, **masking) for batch in _batches(rows))
                num_examples += write_masked_examples(path, batches)
            else:
                num_examples += write_unmasked_examples(path, _batches(rows))
        num_documents += len(block)
        on_block(num_documents, num_examples)
    if num_documents < 2:
        raise ValueError(f"The corpus has {num_documents} documents; next-sentence pairs need at least two.")
    return num_documents, num_examples


def read_training_data(
    paths,
    tokenizer,
    *,
    sequence_length,
    predictions_per_sequence,
    batch_size,
    seed=0,
    start_step=0,
    static_masks=False,
    packed=False,
    repeat=True,
    num_examples=None,
):
    """Batches for `BertPretrainer.fit`: what batch N holds depends on the seed and N alone, so a run can resume.

    Args:
        paths: files of `write_examples`.
        tokenizer: the WordPieceTokenizer they were written with.
        sequence_length: as written.
        predictions_per_sequence: as written; free for dynamic masks.
        batch_size: rows of a batch; a last, smaller one is left out while repeating.
        seed: of order and masks.
        start_step: batches to leave out, those a resumed run has seen.
        static_masks: whether the files were written with static masks.
        packed: whether their rows hold several pairs.
        repeat: epochs without end, each in an order of its own; otherwise one epoch in file order.
        num_examples: in the files; None counts them.

    Returns: tf.data.Dataset of (inputs, labels), see `features.PRETRAINING_INPUTS` and `PRETRAINING_LABELS`, or their
        PACKED_ versions.
    """
    paths = [str(path) for path in paths]
    if packed:
        rows = read_packed_examples(paths, sequence_length, tokenizer.pad_id)
    elif static_masks:
        rows = read_masked_examples(paths, sequence_length, predictions_per_sequence)
    else:
        rows = read_unmasked_examples(paths, sequence_length, tokenizer.pad_id)
    masking = masking_arguments(tokenizer, predictions_per_sequence, seed)

    def shuffled(epoch):
        # The seed of flat_map's graph alone: `shuffle` mixes it with its own, and the order is to depend on `seed`
        # only, not on the program's global seed. (Where that is 0, `shuffle` even fails on a seed that is a tensor.)
        tf.random.set_seed(1)
        # A buffer of a hundred thousand rows: the whole of a small corpus, a good mix of a large one.
        return rows.shuffle(100_000, seed=seed + epoch)

    def epoch_of_batches(epoch, rows_to_skip=0):
        ordered = (shuffled(epoch) if repeat else rows).skip(rows_to_skip)
        batches = ordered.batch(batch_size, drop_remainder=repeat)
        if not static_masks:
            batches = batches.map(lambda batch: mask_tokens(batch, epoch=epoch, **masking), tf.data.AUTOTUNE)
        return batches.map(_packed_inputs_and_labels if packed else _inputs_and_labels)

    if num_examples is None:
        num_examples = int(tf.data.TFRecordDataset(paths).reduce(0, lambda count, _: count + 1))
    if not repeat:
        # Told how many they are, Keras shows progress, and does not warn that the data came to an end.
        size = tf.data.experimental.assert_cardinality(-(-num_examples // batch_size))
        return epoch_of_batches(tf.constant(0, tf.int64)).apply(size).prefetch(2)
    if num_examples < batch_size:
        raise ValueError(f"{num_examples} examples do not fill a batch of {batch_size}: take smaller batches.")
    # Epochs that are over are not read again, and rows of this one that are not masked.
    first, done = divmod(start_step, num_examples // batch_size)
    rows_done = tf.constant(done * batch_size, tf.int64)
    epochs = tf.data.Dataset.range(first, np.iinfo("int64").max)
    batches = epochs.flat_map(lambda epoch: epoch_of_batches(epoch, tf.where(epoch == first, rows_done, 0)))
    return batches.prefetch(4)


def masking_arguments(tokenizer, predictions_per_sequence, seed):
    """What `mask_tokens` needs to know of a tokenizer, beside the epoch."""
    return {
        "vocabulary_size": tokenizer.vocabulary_size,
        "mask_id": tokenizer.mask_id,
        "special_ids": (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id),
        "predictions_per_sequence": predictions_per_sequence,
        "seed": seed,
    }


def _inputs_and_labels(rows):
    inputs = {name: rows[name] for name in features.PRETRAINING_INPUTS}
    return inputs, {name: rows[name] for name in features.PRETRAINING_LABELS}


def _packed_inputs_and_labels(rows):
    inputs = {name: rows[name] for name in features.PACKED_PRETRAINING_INPUTS}
    return inputs, {name: rows[name] for name in features.PACKED_PRETRAINING_LABELS}


def _blocks(documents):
    """Lists of documents of about BLOCK_BYTES; a last block of one document joins the one before it."""
    block, size, waiting = [], 0, None
    for document in documents:
        block.append(document)
        size += sum(map(len, document.sentences))
        if size >= BLOCK_BYTES and len(block) > 1:
            if waiting:
                yield waiting
            block, size, waiting = [], 0, block
    if waiting and len(block) < 2:
        block = waiting + block
    elif waiting:
        yield waiting
    if block:
        yield block


def _tokenize(wordpiece, block):
    """RaggedTensor (documents, sentences, tokens) of ids."""
    sentences = list(itertools.chain.from_iterable(document.sentences for document in block))
    return tf.RaggedTensor.from_row_lengths(wordpiece(sentences), [len(document.sentences) for document in block])


def _pack_block(documents, tokenizer, sequence_length, short_sequence_probability, seed, block_index):
    """The rows of a block, unmasked, in random order."""
    target_length = sequence_length - 3  # [CLS] a [SEP] b [SEP]
    pairs = chunk_documents(documents, target_length, short_sequence_probability, seed, block_index)
    first, second = pair_segments(documents.flat_values, pairs)
    index = tf.range(first.nrows(), dtype=tf.int64)
    first, second = truncate_pairs_at_random(first, second, target_length, seed, block_index, index)
    special = {"cls_id": tokenizer.cls_id, "sep_id": tokenizer.sep_id, "pad_id": tokenizer.pad_id}
    rows = pack(first, second, sequence_length, **special)
    rows["next_sentence_labels"] = tf.constant(pairs.next_sentence_labels)
    # Neighbours in the text are neighbours no longer, whatever the size of a reader's shuffle buffer.
    order = tf.argsort(tf.random.stateless_uniform([len(index)], seed=[seed, block_index]))
    return {name: tf.gather(values, order) for name, values in rows.items()}


def _batches(rows):
    for start in range(0, len(rows["token_ids"]), ROWS_AT_ONCE):
        yield {name: values[start : start + ROWS_AT_ONCE] for name, values in rows.items()}
