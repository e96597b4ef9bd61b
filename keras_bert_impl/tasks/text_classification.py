"""Which class a text, or a pair of texts, belongs to: read files, score, write predictions."""

import json
import pathlib
import typing

import numpy as np
import sklearn.metrics


class Examples(typing.NamedTuple):
    """Labelled texts; `pairs` is None for single texts."""

    texts: list[str]
    pairs: list[str] | None
    labels: list[str]

    @property
    def inputs(self):
        """What `BertTextClassifier.fit` takes: texts, or a pair of lists."""
        return self.texts if self.pairs is None else (self.texts, self.pairs)

    def class_ids(self, class_names):
        """The labels as places in `class_names`. Raises ValueError naming a label that is not among them."""
        places = {name: place for place, name in enumerate(class_names)}
        unknown = sorted(set(self.labels) - set(places))
        if unknown:
            raise ValueError(f"Label {unknown[0]!r} is none of {', '.join(class_names)}, the labels trained on.")
        return np.array([places[label] for label in self.labels], "int32")


def read_examples(path):
    """Reads a .jsonl file: one object a line with "text", "label" and, in all lines or none, "text_pair".

    Raises: ValueError with file and line if the file is empty, or a line is not such an object.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f"{path} not found: expected one JSON object a line with text and label.")
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                rows.append(_read_row(line, f"{path} line {number}"))
                if ("text_pair" in rows[-1]) != ("text_pair" in rows[0]):
                    raise ValueError(f"{path} line {number}: some lines have text_pair and some have not.")
    if not rows:
        raise ValueError(f"{path} has no lines: expected one JSON object a line with text and label.")
    pairs = [row["text_pair"] for row in rows] if "text_pair" in rows[0] else None
    return Examples([row["text"] for row in rows], pairs, [str(row["label"]) for row in rows])


def _read_row(line, place):
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}: not JSON ({error.msg}): {line.strip()[:60]!r}.") from None
    if not isinstance(row, dict):
        raise ValueError(f"{place}: {line.strip()[:60]!r} is not an object with text and label.")
    for key, kinds in (("text", str), ("label", (str, int)), ("text_pair", str)):
        if key in row and not isinstance(row[key], kinds):
            raise ValueError(f"{place}: {key} is {row[key]!r:.60}, expected a string.")
        if key not in row and key != "text_pair":
            raise ValueError(f"{place}: no {key!r}, found {', '.join(row) or 'nothing'}.")
    return row


def score(class_ids, predicted_ids, class_names):
    """Accuracy, macro-averaged F1, Matthews correlation, and the confusion matrix [true][predicted]."""
    labels = range(len(class_names))
    return {
        "examples": len(class_ids),
        "accuracy": float(sklearn.metrics.accuracy_score(class_ids, predicted_ids)),
        "macro_f1": float(
            sklearn.metrics.f1_score(class_ids, predicted_ids, labels=labels, average="macro", zero_division=0)
        ),
        "matthews_correlation": float(sklearn.metrics.matthews_corrcoef(class_ids, predicted_ids)),
        "class_names": list(class_names),
        "confusion": sklearn.metrics.confusion_matrix(class_ids, predicted_ids, labels=labels).tolist(),
    }


def write_predictions(path, examples, probabilities, class_names):
    """Writes a line of JSON for each example: its text, label, prediction and the probability of each class."""
    with pathlib.Path(path).open("w", encoding="utf-8") as file:
        for index, row in enumerate(np.asarray(probabilities, "float64")):
            line = {"text": examples.texts[index]}
            if examples.pairs is not None:
                line["text_pair"] = examples.pairs[index]
            line |= {"label": examples.labels[index], "predicted": class_names[int(row.argmax())]}
            line["probabilities"] = {name: round(p, 6) for name, p in zip(class_names, row.tolist(), strict=True)}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
