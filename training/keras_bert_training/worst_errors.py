"""The worst errors of a fine-tuning run, read from the predictions that it has written."""

import itertools
import json

MOST_ERRORS, LONGEST_TEXT = 20, 400
AROUND = 90  # characters of a long text that are shown before and after what is marked
EXPECTED, GIVEN, BOTH = "ins", "del", "strong"  # what a piece of a text is: the HTML element that the report gives it


def worst_errors(directory):
    """The wrong predictions of a run beside their labels, the worst first, as a dict; {} without labels:

    kind: "texts", "numbers", "words" or "answers", which decides what `report.html` calls the columns.
    wrong, count: how many predictions are wrong, of how many.
    rows: cells, each a str, or a list of pieces (mark, text), where a mark is "", EXPECTED, GIVEN or BOTH.
    """
    for name, read in READERS.items():
        if (directory / name).is_file():
            with (directory / name).open(encoding="utf-8", newline="\n") as lines:  # a word may hold other line ends
                return read(lines, directory)
    return {}


def _worst(kind, rows, size_of, cells_of):
    """What `worst_errors` returns, with the cells of the rows whose errors have the greatest sizes."""
    wrong = [row for row in rows if size_of(row)]
    worst = sorted(wrong, key=size_of, reverse=True)[:MOST_ERRORS]
    return {"kind": kind, "wrong": len(wrong), "count": len(rows), "rows": list(map(cells_of, worst))}


def errors_in_texts(lines, directory):
    """Of classes the surest wrong predictions, of numbers those furthest from their label."""
    rows = list(map(json.loads, lines))
    if "label" not in rows[0]:
        return {}
    return _worst("texts" if "probabilities" in rows[0] else "numbers", rows, _size_of_error, _cells_of_text)


def _cells_of_text(row):
    text = " / ".join(filter(None, (row["text"], row.get("text_pair"))))
    answers = [row["endings"][place] if "endings" in row else place for place in (row["label"], row["predicted"])]
    size = _size_of_error(row)
    return [*map(_cut, (text, *map(str, answers))), f"{size:.1%}" if "probabilities" in row else f"{size:.3g}"]


def _size_of_error(row):
    """How bad a prediction is; 0 if it is right."""
    if "probabilities" not in row:
        return abs(float(row["predicted"]) - float(row["label"]))
    shares = row["probabilities"]
    is_wrong = str(row["predicted"]) != str(row["label"])
    return max(shares.values() if isinstance(shares, dict) else shares) if is_wrong else 0


def errors_in_words(lines, directory):
    """The sentences with the most entities (or, of labels without prefixes, words) missed or invented."""
    from keras_bert_impl.preprocessing.entities import runs_of  # imports Keras, which a report does without

    cells = (line.rstrip("\n").split("\t") for line in lines)
    sentences = [list(rows) for is_word, rows in itertools.groupby(cells, key=lambda row: len(row) == 3) if is_word]
    known = {label for sentence in sentences for _, *labels in sentence for label in labels}
    rows = []
    for sentence in sentences:
        words, *labels = zip(*sentence, strict=True)
        expected, given = (set(runs_of(each, known)) for each in labels)
        rows.append((words, expected - given, given - expected))
    return _worst("words", rows, lambda row: len(row[1]) + len(row[2]), _cells_of_sentence)


def _cells_of_sentence(row):
    words, *errors = row
    text, ends = " ".join(words), list(itertools.accumulate(len(word) + 1 for word in words))
    missed, invented = (
        sorted((ends[first] - len(words[first]) - 1, ends[last] - 1, kind) for kind, first, last in spans)
        for spans in errors
    )
    lists = ("; ".join(f"{text[start:end]} ({kind})" for start, end, kind in spans) for spans in (missed, invented))
    return [_marked(text, missed, invented), *map(_cut, lists)]


def errors_in_answers(lines, directory):
    """The wrong answers to questions that share the least with an expected one, the surest of them first, as the file
    has them."""
    worst = [json.loads(line) for line in itertools.islice(lines, MOST_ERRORS)]
    rows = []
    for row in worst:
        answer, expected, given = row["answer"], [], []
        for one in row["expected"][:1]:
            # Dev sets may have positions that are not the answer's: they are compared as texts alone.
            is_there = row["context"].startswith(one["text"], one["start"])
            start = one["start"] if is_there else row["context"].find(one["text"])
            expected = [(start, start + len(one["text"]))] if start >= 0 else []
        if answer["text"]:
            given = [(answer["start"], answer["end"])]
        texts = "; ".join(dict.fromkeys(one["text"] for one in row["expected"])), answer["text"]
        rows.append([row["question"], _marked(row["context"], expected, given),
                     *(_cut(text) or "(no answer)" for text in texts), f"{answer['probability']:.1%}"])  # fmt: skip
    count = len(json.loads((directory / "predictions.json").read_text(encoding="utf-8")))
    return {"kind": "answers", "wrong": len(worst) + sum(1 for _ in lines), "count": count, "rows": rows}


def _marked(text, expected, given):
    """A text as pieces, with spans (start, end, ...) of characters that were expected and given; of a long text what is
    around them."""
    marks = [0] * len(text)
    for bit, spans in enumerate((expected, given)):
        for start, end, *_ in spans:
            marks[start:end] = [mark | 1 << bit for mark in marks[start:end]]
    pieces, names, end = [], ("", EXPECTED, GIVEN, BOTH), 0
    for mark, places in itertools.groupby(range(len(text)), marks.__getitem__):
        start, end = end, end + len(list(places))
        piece, is_last = text[start:end], end == len(text)
        if not mark and len(text) > LONGEST_TEXT and len(piece) > 2 * AROUND:
            before, after = piece[:AROUND] * bool(start), piece[-AROUND:] * (not is_last)
            pieces += [("", one) for one in (before, " ... ", after) if one]
        else:
            pieces.append((names[mark], piece))
    return pieces


READERS = {
    "predictions.jsonl": errors_in_texts,
    "predictions.conll": errors_in_words,
    "wrong_answers.jsonl": errors_in_answers,
}


def _cut(text):
    """A text of at most LONGEST_TEXT characters."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
