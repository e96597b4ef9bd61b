"""A number for a text, or a pair of texts: STS-B's similarity, and any other."""

import dataclasses
import typing

import keras
import numpy as np

from keras_bert_impl.models import TextRegressor
from keras_bert_impl.preprocessing.long_texts import checked_long_texts
from keras_bert_training.tasks import Task
from keras_bert_training.tasks.labelled_texts import read_split, write_submission
from keras_bert_training.tasks.scores import refuse_nan, regression_scores


@dataclasses.dataclass(frozen=True)
class TextRegression(Task):
    """A task of predicting a number for a text, or a pair of texts; `tasks/__init__.py` explains its parts.

    Args:
        of Task: see there; each split is a `labelled_texts.Split`.
        lowest, highest: limits of the numbers; predictions in a submission are clipped to them. None: no limit.
        main_metric: a key of `scores.regression_scores`; the paper reports Spearman's.
        submissions: test split -> file name of GLUE's submission.
        read_labelled: function that reads one split.
        long_texts: what is done with single texts that are longer than a row: "cut", "head_and_tail" or "windows", see
            `preprocessing.long_texts`; figures and predictions are of texts.
    """

    lowest: float | None = None
    highest: float | None = None
    main_metric: str = "spearman"
    read_labelled: typing.Callable = read_split
    long_texts: str = "cut"

    def __post_init__(self):
        checked_long_texts(self.long_texts)

    def read(self, directory, split, bad_rows):
        """The LabelledTexts of a split. Raises ValueError as `read_table` does, or for a label that is not a number."""
        examples = self.read_labelled(directory, self.splits, split, bad_rows)
        if examples.labels is None:
            return examples
        numbers = [_to_number(label) for label in examples.labels]
        bad = [place for place, number in enumerate(numbers) if not np.isfinite(number)]
        for place in bad:
            bad_rows.add(f"{self.name} {split} row {place}", "the label is not a number", examples.labels[place])
        keep = [place for place in range(len(numbers)) if place not in set(bad)]
        texts, pairs = ([part[place] for place in keep] if part else None for part in (examples.texts, examples.pairs))
        return examples._replace(texts=texts, pairs=pairs, labels=[numbers[place] for place in keep])

    def build(self, encoder, tokenizer, class_names, sequence_length):
        """The model: one linear unit over the encoder."""
        return TextRegressor(encoder, tokenizer=tokenizer, sequence_length=sequence_length, long_texts=self.long_texts)

    def loss(self):
        """Mean squared error, as in the original code for STS-B."""
        return keras.losses.MeanSquaredError()

    def featurize(self, tokenizer, examples, class_names, sequence_length):
        """The Rows of the examples, with labels (examples, 1) if the examples have labels."""
        labels = None if examples.labels is None else np.array(examples.labels, "float32")[:, None]
        return examples.rows(tokenizer, sequence_length, labels, self.long_texts)

    def score(self, examples, rows, outputs, class_names):
        """Pearson, Spearman and mean squared error."""
        return regression_scores(np.array(examples.labels), numbers_of(outputs))

    def write_predictions(self, directory, suffix, examples, rows, outputs, class_names):
        """Writes predictions{suffix}.jsonl: text, label if known, prediction."""
        found = [{"predicted": round(float(value), 4)} for value in numbers_of(outputs)]
        examples.write(directory / f"predictions{suffix}.jsonl", found)

    def write_submission(self, directory, split, outputs, class_names):
        """Writes GLUE's TSV for a test split, with three decimals, clipped to `lowest` and `highest`."""
        values = np.clip(numbers_of(outputs), self.lowest, self.highest)
        write_submission(directory / self.submissions[split], [f"{value:.3f}" for value in values])


def numbers_of(outputs):
    """One number for each example, (examples,). Raises ValueError for NaN."""
    refuse_nan(outputs, "The prediction for example")
    return np.reshape(np.asarray(outputs, "float64"), -1)


def _to_number(label):
    try:
        return float(label)
    except ValueError:
        return float("nan")
