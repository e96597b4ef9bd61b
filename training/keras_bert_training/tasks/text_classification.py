"""Which class a text, or a pair of texts, belongs to: reads files, makes rows, scores and writes predictions."""

import dataclasses
import typing

import numpy as np

from keras_bert_impl.losses import WeightedCrossEntropy
from keras_bert_impl.models import TextClassifier
from keras_bert_impl.models.answers import softmax
from keras_bert_impl.preprocessing.long_texts import checked_long_texts
from keras_bert_training.tasks import Task
from keras_bert_training.tasks.labelled_texts import in_order, read_labelled, read_split, write_submission
from keras_bert_training.tasks.scores import classification_scores, refuse_nan
from keras_bert_training.tasks.tables import BadRows


@dataclasses.dataclass(frozen=True)
class TextClassification(Task):
    """A task of predicting the class of a text, or a pair of texts; `tasks/__init__.py` explains its parts.

    Args:
        of Task: see there; each split is a `labelled_texts.Split`.
        main_metric: a key of `scores.classification_scores`.
        class_names: label in the files -> name of the class; None means the labels of the training file.
        submissions: test split -> file name of GLUE's submission.
        read_labelled: function that reads one split; a distribution with another layout has its own.
        long_texts: what is done with single texts that are longer than a row: "cut", "head_and_tail" or "windows", see
            `preprocessing.long_texts`; figures and predictions are of texts.
    """

    main_metric: str = "accuracy"
    class_names: dict | None = None
    read_labelled: typing.Callable = read_split
    long_texts: str = "cut"

    def __post_init__(self):
        checked_long_texts(self.long_texts)

    def read(self, directory, split, bad_rows):
        """The LabelledTexts of a split. Raises ValueError as `read_table` does, or for a label that is not a class."""
        examples = self.read_labelled(directory, self.splits, split, bad_rows)
        if self.class_names is None or examples.labels is None:
            return examples
        names = list(self.class_names.values())
        return examples._replace(labels=[names[place] for place in examples.class_ids(self.class_names)])

    def find_class_names(self, train):
        """The classes in order: the task's, or the labels of the training file as `in_order` sorts them."""
        names = list(self.class_names.values()) if self.class_names else in_order(train.labels)
        if len(names) < 2:
            raise ValueError(f"All training texts have the label {names[0]!r}: classification needs at least two.")
        return names

    def build(self, encoder, tokenizer, class_names, sequence_length):
        return TextClassifier(
            *(encoder, len(class_names)),
            tokenizer=tokenizer,
            sequence_length=sequence_length,
            class_names=class_names,
            long_texts=self.long_texts,
        )

    def loss(self):
        """Cross-entropy on logits, divided by the sum of the weights."""
        return WeightedCrossEntropy()

    def featurize(self, tokenizer, examples, class_names, sequence_length):
        """The Rows of the examples, with class ids if the examples have labels."""
        labels = None if examples.labels is None else examples.class_ids(class_names)
        return examples.rows(tokenizer, sequence_length, labels, self.long_texts)

    def score(self, examples, rows, outputs, class_names):
        """The figures of comparing logits, one row for each example, with the labels."""
        refuse_nan(outputs, "The logits of example")
        return classification_scores(rows.of_texts(rows.labels), np.argmax(outputs, axis=1), class_names)

    def write_predictions(self, directory, suffix, examples, rows, outputs, class_names):
        """Writes predictions{suffix}.jsonl, with the probability of each class."""
        found = []
        for row in softmax(outputs):
            shares = {name: round(share, 6) for name, share in zip(class_names, row.tolist(), strict=True)}
            found.append({"predicted": class_names[int(row.argmax())], "probabilities": shares})
        examples.write(directory / f"predictions{suffix}.jsonl", found)

    def write_submission(self, directory, split, outputs, class_names):
        """Writes GLUE's TSV for a test split, with the labels as in GLUE's files."""
        labels = {name: label for label, name in (self.class_names or {}).items()}
        predicted = [class_names[place] for place in np.argmax(outputs, axis=1)]
        write_submission(directory / self.submissions[split], [labels.get(name, name) for name in predicted])


def read_examples(path):
    """Reads a .jsonl, .csv or .tsv file with the columns "text", "label" and, in all rows or none, "text_pair".

    Raises: ValueError with file and line if the file is empty or a row is malformed.
    """
    columns = {"text": "text", "text_pair": "text_pair", "label": "label"}
    return read_labelled(path, columns, BadRows("stop"), optional=("text_pair",))
