"""The data of a pre-training run, as keras-bert prepare-data wrote it: a local directory, or a remote one that
TensorFlow can read, such as gs://bucket/folder.

tf.data reads the rows if TensorFlow trains, or if they are in a bucket; for JAX and torch they are read in NumPy. The
batches are the same.
"""

import contextlib
import hashlib
import json
import pathlib
import tempfile

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.features import MASKING_RATE, usual_predictions
from keras_bert_impl.text.rows.example_files import DamagedRecords
from keras_bert_impl.text.rows.masking import MaskingRule, NextTokens
from keras_bert_impl.text.rows.numpy_data import RowFiles, TrainingBatches, check_streams
from keras_bert_impl.text.rows.pretraining_rows import PAIRS, RowFormat
from keras_bert_impl.text.rows.remote_files import is_remote, open_file
from keras_bert_impl.text.rows.shards import damaged_files, read_manifest, read_prepared_json
from keras_bert_impl.text.tokenizers import VOCABULARY_FILES, open_tokenizer

MASKING_OPTIONS = ("masking_unit", "masking_rate", "mask_token_rate", "random_token_rate")
RATES = {"mask_token_rate": 0.8, "random_token_rate": 0.1}  # the paper's
TOKENIZER_FILES = (*VOCABULARY_FILES, "tokenizer_config.json")


def predictions_of(objective, length, prepared_for):
    """The predictions of a row: as many as it was prepared for, unless direction or masking rate ask for others."""
    if objective.direction != "both":  # every token predicts its neighbour
        return length - 1
    return prepared_for if objective.masking_rate == MASKING_RATE else usual_predictions(length, objective.masking_rate)


def known_languages(summary, prepared):
    """The codes of the languages of prepared data; none if nobody has named one: "en" is the option's default."""
    if summary.get("languages"):  # the folders of the text
        return sorted(summary["languages"])
    language = prepared.get("language", "en")
    return [language] if language != "en" or prepared.get("input") is None else []


class PretrainingData:
    """The prepared data of a run: tokenizer, row length and batches.

    Args:
        directory: that keras-bert prepare-data wrote, also a remote one.
        rows: the RowOptions of the run.
        objective: its ObjectiveOptions.
        seed: of the order and the masks.
        hides_words: False leaves all tokens as they are, for objectives without masks.
        rates: the rates in RATES unless the objective gives them.

    Raises: ValueError if the data is damaged, or if words are hidden in the files already.
    """

    def __init__(self, directory, rows, objective, seed, hides_words=True, rates=RATES):
        self.directory = str(directory).rstrip("/")
        summary = read_prepared_json(self.directory, "summary.json")
        prepared = read_prepared_json(self.directory, "run.json")["configuration"]
        rates = self._rates(objective, prepared, hides_words, rates)
        shards, files = read_manifest(self.directory)
        # Thoroughly: with another vocabulary the ids in the rows would be meaningless.
        of_tokenizer = [file for file in files if file["path"] in TOKENIZER_FILES]
        self._refuse_damaged(of_tokenizer, thorough=True)
        self.tokenizer = self._read_tokenizer([file["path"] for file in of_tokenizer])
        self.direction = objective.direction
        self.sequence_length, self.predictions_per_sequence = self._row_sizes(rows, objective, summary)
        sizes = self.sequence_length, self.predictions_per_sequence
        self.rows = RowFormat(*sizes, prepared["pairs"], prepared["static_masks"], prepared["packed"])
        self.packed, self.pairs, self.has_pairs = self.rows.packed, self.rows.pairs, self.rows.pairs in PAIRS
        self.masked_unit = prepared["masking_unit"] if self.rows.static_masks else objective.masking_unit
        if objective.direction != "both":
            self.masking = NextTokens(objective.direction)
        elif self.rows.static_masks:
            self.masking = None
        else:
            self.masking = MaskingRule(self.tokenizer, sizes[1], seed, objective.masking_unit, **rates)
        self.num_examples = summary["examples"][str(self.sequence_length)]
        self.corpus, self.languages = summary.get("corpus", {}), known_languages(summary, prepared)
        self.shards = sorted(
            (shard for shard in shards if shard["path"].split("/")[1] == str(self.sequence_length)),
            key=lambda shard: shard["path"],
        )
        self._refuse_damaged(self.shards)
        # The manifest has checksums: this tells other rows, and another vocabulary, at the same path.
        described = json.dumps([of_tokenizer, self.shards], sort_keys=True)
        self.fingerprint = hashlib.sha256(described.encode()).hexdigest()
        of_training = self._shards_of("train")
        check_streams(rows.streams, rows.batch_size, distribution.part_of_batch()[1], len(of_training))
        tokens, count = (sum(shard[name] for shard in of_training) for name in ("tokens", "examples"))
        self.share_of_tokens = tokens / (count * self.sequence_length)  # the rest is padding
        self.batch_size, self.seed, self.streams = rows.batch_size, seed, rows.streams
        self.validation_batches = rows.validation_batches

    def _rates(self, objective, prepared, hides_words, rates):
        """What becomes of the tokens of rows that are masked while they are read. Raises ValueError if the files forbid
        what was asked for."""
        if objective.masking_unit == "phrase" and not prepared.get("phrases"):
            raise ValueError(
                f"{self.directory} holds no phrases to mask: prepare the data with --phrases, or leave masking_unit "
                "phrase out."
            )
        asked = {name: value for name in MASKING_OPTIONS if (value := getattr(objective, name)) is not None}
        if not prepared["static_masks"]:
            asked.pop("masking_unit")
            return {**rates, **asked, **({} if hides_words else dict.fromkeys(RATES, 0.0))}
        if not hides_words:
            raise ValueError(
                f"The examples in {self.directory} are already masked: prepare the data again without --static_masks."
            )
        of_files = {"masking_unit": prepared["masking_unit"], "masking_rate": MASKING_RATE, **RATES}
        usual = {name: getattr(type(objective), name) for name in asked}
        if others := [name for name, value in asked.items() if value not in (of_files[name], usual[name])]:
            raise ValueError(
                f"{self.directory} was masked by {of_files['masking_unit']} while it was prepared: leave "
                f"{' and '.join(others)} out, or prepare the data without static_masks."
            )
        return {}

    def _row_sizes(self, rows, objective, summary):
        """(tokens, predictions) of a row; raises ValueError if no rows of the length asked for were prepared."""
        lengths = summary["sequence_lengths"]
        length = rows.sequence_length or lengths[0]
        if length not in lengths:
            raise ValueError(
                f"{self.directory} holds examples of {' and '.join(map(str, lengths))} tokens, not {length}."
            )
        return length, predictions_of(objective, length, summary["predictions_per_sequence"][lengths.index(length)])

    def _read_tokenizer(self, names):
        if not is_remote(self.directory):
            return open_tokenizer(self.directory)
        with tempfile.TemporaryDirectory() as near:
            for name in names:
                with open_file(f"{self.directory}/{name}") as file:
                    (pathlib.Path(near) / name).write_bytes(file.read())
            return open_tokenizer(near)

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
        """Replaces an error for a damaged record by one that names the damaged files and says what to do."""
        try:
            yield
        except Exception as error:
            if (
                isinstance(error, DamagedRecords)
                or "DataLossError" in repr(type(error))
                or "corrupted record" in str(error)
            ):
                self._refuse_damaged(self.shards, thorough=True)
            raise

    def for_fit(self, split, **options):
        """`batches` for `fit` and `evaluate`: with several devices only full batches, of which each process reads its
        part."""
        is_shared, part = distribution.is_shared(), distribution.part_of_batch()
        return distribution.shared(self.batches(split, whole_batches=is_shared, part=part, **options))

    def batches(self, split, **options):
        """(inputs, labels) for Keras: a tf.data.Dataset on TensorFlow and from buckets, or `TrainingBatches`."""
        found = self.opened(split, **options)
        if keras.backend.backend() != "tensorflow" and not is_remote(self.directory):
            return found
        from keras_bert_impl.preprocessing.graphs.tf_data import read_training_data

        return read_training_data(found)

    def arrays(self, split, **options):
        """Iterates over the same (inputs, labels) as NumPy arrays."""
        if is_remote(self.directory):
            return self.batches(split, **options).as_numpy_iterator()
        return iter(self.opened(split, **options))

    def opened(self, split, **options):
        """The `TrainingBatches` of a split; for `options` see there."""
        shards = self._shards_of(split)
        paths = [f"{self.directory}/{shard['path']}" for shard in shards]
        files = RowFiles(paths, self.tokenizer, self.rows, [shard["examples"] for shard in shards])
        options = {"repeat": False, "seed": self.seed, "streams": self.streams, **options}
        return TrainingBatches(files, self.masking, self.batch_size, **options)

    def validation(self):
        """The validation batches of a round: `validation_batches`, with rows from all validation files."""
        return self.for_fit("validation", most_rows=self.validation_batches * self.batch_size)

    def batch_at(self, step):
        """The training batch of a step, as NumPy arrays."""
        return next(self.arrays("train", start_step=step, repeat=True))

    def predicted_positions(self, inputs):
        """(batch, predictions), where in the rows the tokens stand that are predicted."""
        return inputs["mask_positions"] + {"both": 0, "left_to_right": 1, "right_to_left": -1}[self.direction]

    def unmasked_rows(self, split, most_rows=None):
        """Yields the `token_ids` of a split as they were before masking, one (batch, length) array at a time."""
        for inputs, labels in self.arrays(split, most_rows=most_rows):
            token_ids = inputs["token_ids"].copy()
            if self.direction != "both":  # nothing is masked
                yield token_ids
                continue
            row, column = np.nonzero(labels["mask_weights"])
            token_ids[row, inputs["mask_positions"][row, column]] = labels["mask_ids"][row, column]
            yield token_ids
