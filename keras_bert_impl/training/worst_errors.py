"""The worst errors of a fine-tuning run, read from the predictions that it has written."""

import heapq
import itertools
import json
import typing

MOST_ERRORS, LONGEST_TEXT = 20, 400
AROUND = 90  # characters of a context that are shown before and after an answer
EXPECTED, GIVEN, BOTH = "ins", "del", "strong"  # what a piece of a text is: the HTML element that the report gives it
LEGEND = "In the texts, green is expected only, red is predicted only, and bold is in both."


class Errors(typing.NamedTuple):
    """Wrong predictions, the worst first.

    Fields:
        note: how many there are, and what order they are in.
        head: (name, "text", "word" or "number") of each column.
        rows: cells, each a str, or a list of pieces (mark, text), of which a mark is "", EXPECTED, GIVEN or BOTH.
    """

    note: str = ""
    head: tuple = ()
    rows: tuple = ()


def worst_errors(directory):
    """The `Errors` of a run that has written predictions beside labels; without any, none."""
    for name, read in READERS.items():
        if (directory / name).is_file():
            return read(directory / name)
    return Errors()


def errors_in_texts(path):
    """Of classes the surest wrong predictions, of numbers those furthest from their label; see `Errors`."""
    found, count, wrong = [], 0, 0
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            if "label" not in row:
                return Errors()
            count += 1
            size = _size_of_error(row)
            if size is not None:
                wrong += 1
                found = _with_one_more(found, (size, -number, row))
    worst = heapq.nlargest(MOST_ERRORS, found, key=lambda one: one[:2])
    is_number = bool(worst) and "probabilities" not in worst[0][2]
    rows = []
    for size, _, row in worst:
        text = _cut(" / ".join(filter(None, (row["text"], row.get("text_pair")))))
        answers = [row["label"], row["predicted"]]
        if "endings" in row:
            answers = [row["endings"][place] for place in answers]
        rows.append([text, *map(str, answers), f"{size:.3g}" if is_number else f"{size:.1%}"])
    note = f"{wrong:,} of {count:,} predictions are wrong; these were the surest." if not is_number else (
        f"The {len(rows)} predictions of {count:,} that are furthest from their label."
    )  # fmt: skip
    size = "difference" if is_number else "probability"
    return Errors(note, (("text", "text"), ("label", "word"), ("predicted", "word"), (size, "number")), rows)


def _size_of_error(row):
    """How bad a prediction is; None if it is right."""
    if "probabilities" not in row:
        return abs(float(row["predicted"]) - float(row["label"])) or None
    if str(row["predicted"]) == str(row["label"]):
        return None
    shares = row["probabilities"]
    return max(shares.values() if isinstance(shares, dict) else shares)


def errors_in_words(path):
    """The sentences with the most entities (or, of labels without prefixes, words) missed or invented; see `Errors`."""
    from keras_bert_impl.natural_data.entities import runs_of  # imports Keras, which a report does without

    known = {label for sentence in sentences_in(path) for _, *labels in sentence for label in labels}
    found, count, wrong = [], 0, 0
    for number, sentence in enumerate(sentences_in(path)):
        words, wanted, predicted = zip(*sentence, strict=True)
        expected, given = (set(runs_of(labels, known)) for labels in (wanted, predicted))
        count += 1
        if size := len(expected ^ given):
            wrong += 1
            found = _with_one_more(found, (size, -number, (words, expected - given, given - expected)))
    rows = []
    for *_, (words, missed, invented) in heapq.nlargest(MOST_ERRORS, found, key=lambda one: one[:2]):
        lists = (_listed(words, spans) for spans in (missed, invented))
        rows.append([_cut(_marked_words(words, missed, invented)), *map(_cut, lists)])
    note = f"{wrong:,} of {count:,} sentences have errors; these have the most. {LEGEND}"
    return Errors(note, (("sentence", "text"), ("missed", "word"), ("invented", "word")), rows)


def _listed(words, spans):
    """Entities, (type, first word, last word), as one text."""
    in_order = sorted(spans, key=lambda span: span[1:])
    return "; ".join(f"{' '.join(words[first : last + 1])} ({kind})" for kind, first, last in in_order)


def sentences_in(path):
    """The sentences of a predictions.conll: lists of (word, label, prediction)."""
    with path.open(encoding="utf-8", newline="\n") as lines:  # a word may hold other line ends
        cells = (line.rstrip("\n").split("\t") for line in lines)
        for is_word, sentence in itertools.groupby(cells, key=lambda row: len(row) == 3):
            if is_word:
                yield list(sentence)


def _marked_words(words, missed, invented):
    """A sentence as pieces, with its missed and invented (type, first word, last word)."""
    expected, given = ({place for _, first, last in spans for place in range(first, last + 1)}
                       for spans in (missed, invented))  # fmt: skip
    pieces = []
    for mark, group in itertools.groupby(range(len(words)), lambda place: _mark(place, expected, given)):
        pieces += [(mark, " ".join(words[place] for place in group)), ("", " ")]
    return pieces[:-1]


def _mark(place, expected, given):
    return {(True, False): EXPECTED, (False, True): GIVEN, (True, True): BOTH}.get(
        (place in expected, place in given), ""
    )


def errors_in_answers(path):
    """The wrong answers to questions that share the least with an expected one, the surest of them first; see
    `Errors`."""
    questions = json.loads(path.with_name("predictions.json").read_text(encoding="utf-8"))
    with path.open(encoding="utf-8") as lines:
        worst = [json.loads(line) for line in itertools.islice(lines, MOST_ERRORS)]
        wrong = len(worst) + sum(1 for _ in lines)
    rows = []
    for row in worst:
        expected = "; ".join(dict.fromkeys(answer["text"] for answer in row["expected"])) or "(no answer)"
        answered = row["answer"]["text"] or "(no answer)"
        cells = [row["question"], _marked_context(row), _cut(expected), _cut(answered)]
        rows.append([*cells, f"{row['answer']['probability']:.1%}"])
    note = (
        f"{wrong:,} of {len(questions):,} answers are not exactly an expected one; these share the fewest words with "
        f"it, and were the surest. {LEGEND}"
    )
    head = ("question", "text"), ("context", "text"), ("expected", "word"), ("answered", "word")
    return Errors(note, (*head, ("probability", "number")), rows)


def _marked_context(row):
    """The parts of a context around the answer that was given and the first expected one, as pieces."""
    context, spans = row["context"], {EXPECTED: range(0), GIVEN: range(0)}
    if row["expected"]:
        text, start = row["expected"][0]["text"], row["expected"][0]["start"]
        # Dev sets may have positions that are not the answer's: they are compared as texts alone.
        start = start if context.startswith(text, start) else context.find(text)
        spans[EXPECTED] = range(max(start, 0), max(start, 0) + len(text)) if start >= 0 else range(0)
    if row["answer"]["text"]:
        spans[GIVEN] = range(row["answer"]["start"], row["answer"]["end"])
    shown = set()
    for span in filter(None, spans.values()):
        begin, end = max(span.start - AROUND, 0), min(span.stop + AROUND, len(context))
        begin = context.find(" ", begin, span.start) + 1 or span.start if begin else 0  # whole words
        end = context.rfind(" ", span.stop, end) if end < len(context) else end
        shown |= set(range(begin, max(end, span.stop)))
    pieces = []
    for mark, group in itertools.groupby(
        range(len(context)), lambda place: _mark(place, *spans.values()) if place in shown else None
    ):
        places = list(group)
        pieces.append(("", " ... ") if mark is None else (mark, context[places[0] : places[-1] + 1]))
    return pieces


READERS = {
    "predictions.jsonl": errors_in_texts,
    "predictions.conll": errors_in_words,
    "wrong_answers.jsonl": errors_in_answers,
}


def _with_one_more(found, one):
    """The list with one more (size, -number, row), cut to the worst from time to time: a file may be of any size."""
    found.append(one)
    return heapq.nlargest(MOST_ERRORS, found, key=lambda one: one[:2]) if len(found) > 10 * MOST_ERRORS else found


def _cut(text):
    """A text, or pieces, of at most LONGEST_TEXT characters."""
    if isinstance(text, str):
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    pieces, left = [], LONGEST_TEXT
    for mark, piece in text:
        if len(piece) > left:
            return [*pieces, (mark, piece[:left]), ("", "...")]
        pieces.append((mark, piece))
        left -= len(piece)
    return pieces
