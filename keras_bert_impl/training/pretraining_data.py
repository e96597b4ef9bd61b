"""The data of a pre-training run, as keras-bert prepare-data wrote it: a local directory, or a remote one that
TensorFlow can read, such as gs://bucket/folder."""

import contextlib
import tempfile

import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.preprocessing.pretraining import PAIRS, check_streams, read_training_data
from keras_bert_impl.preprocessing.shards import damaged_files, read_json, read_manifest
from keras_bert_impl.tokenizers import WordPieceTokenizer

TOKENIZER_FILES = ("vocab.txt", "tokenizer_config.json")


class PretrainingData:
    """The prepared data of a run: tokenizer, row length and batches."""

    def __init__(self, config):
        import tensorflow as tf  # imported silently by keras_bert_impl.preprocessing above

        self.directory = str(config.data).rstrip("/")
        try:
            summary = read_json(self.directory, "summary.json")
        except tf.errors.NotFoundError:
            raise ValueError(
                f"{self.directory} holds no prepared data: run keras-bert prepare-data --output {self.directory} first."
            ) from None
        prepared = read_json(self.directory, "run.json")["configuration"]
        shards, files = read_manifest(self.directory)
        # Thoroughly: with another vocabulary the ids in the rows would be meaningless.
        self._refuse_damaged([file for file in files if file["path"] in TOKENIZER_FILES], thorough=True)
        self.tokenizer = self._read_tokenizer()
        lengths = summary["sequence_lengths"]
        self.sequence_length = config.sequence_length or lengths[0]
        if self.sequence_length not in lengths:
            raise ValueError(
                f"{self.directory} holds rows of {' and '.join(map(str, lengths))} tokens, not {self.sequence_length}."
            )
        self.predictions_per_sequence = summary["predictions_per_sequence"][lengths.index(self.sequence_length)]
        self.static_masks, self.packed = prepared["static_masks"], prepared["packed"]
        self.has_pairs = prepared["pairs"] in PAIRS
        self.num_examples = summary["examples"][str(self.sequence_length)]
        self.shards = sorted(
            (shard for shard in shards if shard["path"].split("/")[1] == str(self.sequence_length)),
            key=lambda shard: shard["path"],
        )
        self._refuse_damaged(self.shards)
        of_training = self._shards_of("train")
        check_streams(config.streams, config.batch_size, distribution.part_of_batch()[1], len(of_training))
        tokens, rows = (sum(shard[name] for shard in of_training) for name in ("tokens", "examples"))
        self.share_of_tokens = tokens / (rows * self.sequence_length)  # the rest is padding
        self.batch_size, self.seed, self.streams = config.batch_size, config.seed, config.streams
        self.validation_batches, self.masking_unit = config.validation_batches, config.masking_unit

    def _read_tokenizer(self):
        if "://" not in self.directory:
            return WordPieceTokenizer.from_pretrained(self.directory)
        import tensorflow as tf

        with tempfile.TemporaryDirectory() as near:
            for name in TOKENIZER_FILES:
                tf.io.gfile.copy(f"{self.directory}/{name}", f"{near}/{name}")
            return WordPieceTokenizer.from_pretrained(near)

    def _shards_of(self, split):
        return [shard for shard in self.shards if f"/{split}/" in shard["path"]]

    def _refuse_damaged(self, files, thorough=False):
        damaged = damaged_files(self.directory, files, thorough)
        if damaged:
            names = ", ".join(f"{self.directory}/{file['path']}" for file in damaged)
            raise ValueError(
                f"{names} {'is' if len(damaged) == 1 else 'are'} missing or damaged: remove damaged files, and run the "
                "same keras-bert prepare-data command again."
            )

    @contextlib.contextmanager
    def naming_damage(self):
        """Replaces TensorFlow's error for a damaged record, which does not name the file, by one that does."""
        try:
            yield
        except Exception as error:
            if "DataLossError" in repr(type(error)) or "corrupted record" in str(error):
                self._refuse_damaged(self.shards, thorough=True)
            raise

    def for_fit(self, split, **options):
        """`batches` for `fit` and `evaluate`: with several devices only full batches, of which each process reads its
        part."""
        is_shared, part = distribution.is_shared(), distribution.part_of_batch()
        return distribution.shared(self.batches(split, whole_batches=is_shared, part=part, **options))

    def batches(self, split, start_step=0, repeat=False, whole_batches=False, part=(0, 1), most_rows=None):
        """A tf.data.Dataset of (inputs, labels); see `read_training_data`."""
        shards = self._shards_of(split)
        return read_training_data(
            [f"{self.directory}/{shard['path']}" for shard in shards],
            self.tokenizer,
            sequence_length=self.sequence_length,
            predictions_per_sequence=self.predictions_per_sequence,
            batch_size=self.batch_size,
            seed=self.seed,
            start_step=start_step,
            static_masks=self.static_masks,
            packed=self.packed,
            masking_unit=self.masking_unit,
            repeat=repeat,
            whole_batches=whole_batches,
            part=part,
            streams=self.streams,
            num_examples=[shard["examples"] for shard in shards],
            most_rows=most_rows,
        )

    def validation(self):
        """The validation batches of a round: `validation_batches`, with rows from all validation files."""
        return self.for_fit("validation", most_rows=self.validation_batches * self.batch_size)

    def batch_at(self, step):
        """The training batch of a step, as NumPy arrays."""
        return next(self.batches("train", start_step=step, repeat=True).take(1).as_numpy_iterator())

    def unmasked_rows(self, split, most_rows=None):
        """Yields the `token_ids` of a split as they were before masking, one (batch, length) array at a time."""
        for inputs, labels in self.batches(split, most_rows=most_rows).as_numpy_iterator():
            token_ids = inputs["token_ids"].copy()
            row, column = np.nonzero(labels["mask_weights"])
            token_ids[row, inputs["mask_positions"][row, column]] = labels["mask_ids"][row, column]
            yield token_ids
