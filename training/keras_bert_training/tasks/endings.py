"""Which of several continuations follows a text: SWAG and similar files (Devlin et al. 2019, section 4.4)."""

import dataclasses
import typing

import keras
import numpy as np

from keras_bert_impl.json_files import write_json_lines
from keras_bert_impl.models import MultipleChoice
from keras_bert_impl.models.answers import softmax
from keras_bert_impl.preprocessing import ChoicePreprocessor
from keras_bert_training.tasks import Task
from keras_bert_training.tasks.labelled_texts import Split
from keras_bert_training.tasks.scores import classification_scores, refuse_nan
from keras_bert_training.tasks.tables import read_table


class TextsWithEndings(typing.NamedTuple):
    """Texts, the endings of each, and the number of the right ending; `labels` is None if these are not known."""

    texts: list[str]
    endings: list[list[str]]
    labels: list[int] | None


def read_choices(path, columns, bad_rows, optional=()):
    """The TextsWithEndings of a table whose columns are `text`, perhaps `begin`, `ending0`, `ending1`... and `label`.

    Args:
        path: a table as `read_table` takes it.
        columns: our names -> the file's. `begin` is put before each ending; it is SWAG's sent2.
        bad_rows: a BadRows; a row is malformed if its label is not the number of an ending.
        optional: those of our names that the file may lack.

    Raises: ValueError as `read_table` does.
    """
    ending_names = [ours for ours in columns if ours.startswith("ending")]
    texts, endings, labels = [], [], []
    for place, row in read_table(path, columns, bad_rows, optional):
        label = str(row.get("label", "0"))
        if not label.isdecimal() or int(label) >= len(ending_names):
            bad_rows.add(place, f"the label is not a number below {len(ending_names)}", label)
            continue
        begin = f"{row['begin']} " if row.get("begin") else ""
        texts.append(row["text"])
        endings.append([begin + row[name] for name in ending_names])
        labels.append(int(label) if "label" in row else None)
    return TextsWithEndings(texts, endings, None if None in labels else labels)


@dataclasses.dataclass(frozen=True)
class EndingChoice(Task):
    """A task of choosing an ending; `keras_bert_training/tasks/__init__.py` explains its parts.

    Args:
        of Task: see there; each split is a Split.
        main_metric: a key of `scores.classification_scores`.
    """

    main_metric: str = "accuracy"

    def read(self, directory, split, bad_rows):
        """The TextsWithEndings of a split. Raises ValueError as `read_choices` does."""
        one = self.splits[split]
        return read_choices(one.path(directory), one.columns, bad_rows, one.optional)

    def build(self, encoder, tokenizer, class_names, sequence_length):
        """The model: a score for each ending, softmax over them."""
        return MultipleChoice(encoder, tokenizer=tokenizer, sequence_length=sequence_length)

    def loss(self):
        """Cross-entropy over the endings."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def featurize(self, tokenizer, examples, class_names, sequence_length):
        """Rows `[CLS] text [SEP] ending [SEP]`, the endings of a text side by side."""
        labels = None if examples.labels is None else np.array(examples.labels, "int32")
        return ChoicePreprocessor(tokenizer, sequence_length).rows((examples.texts, examples.endings), labels)

    def score(self, examples, rows, outputs, class_names):
        """Accuracy of choosing the ending with the highest score; outputs are (examples, choices)."""
        refuse_nan(outputs, "The scores of example")
        names = [str(place) for place in range(rows.choices)]
        return classification_scores(rows.labels, np.argmax(outputs, axis=1), names)

    def write_predictions(self, directory, suffix, examples, rows, outputs, class_names):
        """Writes predictions{suffix}.jsonl: text, endings, label if known, prediction, probabilities."""
        rows = []
        for place, probabilities in enumerate(softmax(outputs)):
            row = {"text": examples.texts[place], "endings": examples.endings[place]}
            if examples.labels is not None:
                row["label"] = examples.labels[place]
            predicted = {"predicted": int(probabilities.argmax())}
            rows.append({**row, **predicted, "probabilities": np.round(probabilities, 6).tolist()})
        write_json_lines(directory / f"predictions{suffix}.jsonl", rows)


ENDINGS = {f"ending{place}": f"ending{place}" for place in range(4)}
# sent2 is the beginning of the second sentence; startphrase is sent1 and sent2 in one.
SWAG_COLUMNS = {"text": "sent1", "begin": "sent2", **ENDINGS, "label": "label"}
# Category, prompt, endings, label, without header (Chen et al. 2019).
CODAH_COLUMNS = {"text": 1, **{f"ending{place}": place + 2 for place in range(4)}, "label": 6}

TASKS = {
    "swag": EndingChoice(
        "swag",
        {
            "train": Split("train.csv", SWAG_COLUMNS),
            "dev": Split("val.csv", SWAG_COLUMNS),
            "test": Split("test.csv", SWAG_COLUMNS, optional=("label",)),
        },
        # Table 4: dev accuracy of BERT-base and -large; section 4.4: three epochs, 2e-5, batches of 16.
        paper={"BERT-base": {"accuracy": 81.6}, "BERT-large": {"accuracy": 86.6}},
        defaults={"learning_rate": 2e-5, "batch_size": 16, "epochs": 3},
    ),
    "codah": EndingChoice(
        "codah",
        {split: Split(f"{split}.tsv", CODAH_COLUMNS) for split in ("train", "dev", "test")},
        defaults={"learning_rate": 2e-5, "batch_size": 16, "epochs": 3},
    ),
}
