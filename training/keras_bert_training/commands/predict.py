"""Asks a trained checkpoint about new texts.

    keras-bert predict --model runs/classifier --input new.csv --output answers.jsonl
    echo "The cat sat on the mat." | keras-bert predict --model runs/classifier

What is asked follows from the checkpoint: classes, numbers, entities, answers, endings, words for [MASK], or vectors.
Rows are answered in their order while the input is read; each answer is written with the columns of its row.
"""

import contextlib
import itertools
import sys
import time
import typing
import warnings

from keras_bert_impl.text.tokenizers.rows import TextsCutWarning
from keras_bert_training.commands.export import choose_task, model_for
from keras_bert_training.commands.prediction_files import format_of, joined, open_output, read_rows
from keras_bert_training.options.predict import PredictConfig as PredictConfig
from keras_bert_training.runs import closed_pipe_ends
from keras_bert_training.tasks.tables import BadRows

LARGEST_PART = 64  # batches; texts of a part that have about the same length are computed together
SECONDS_BETWEEN_NOTES = 10


def run(config):
    """Answers all rows and returns their number."""
    task = choose_task(config.model, config.task)
    asked, model = QUESTIONS[task], model_for(task, config.model)
    bad_rows, started, count, cut = BadRows(config.bad_rows), time.monotonic(), 0, [0]
    noted, suffix = started, 1
    with open_output(config.output, config.input) as write, closed_pipe_ends():
        rows = read_rows(config, asked.needed, asked.optional, bad_rows)
        for part in parts_of(rows, config.batch_size):
            with counting_cut_texts(cut):
                answers = asked.ask(model, part, config)
            rows_written, number = joined(part, answers, suffix)
            if number != suffix:
                suffix = number
                new = ", ".join(name for name in rows_written[0] if name not in part[0])
                note(f"the input already has columns with these names: the answers are in {new}")
            write(rows_written)
            count += len(part)
            if time.monotonic() - noted > SECONDS_BETWEEN_NOTES:
                noted = time.monotonic()
                note(f"{count:,} examples, {count / (noted - started):.0f} a second")
    for message in bad_rows.messages:
        note(f"skipped {message}")
    if cut[0]:
        note(f"{cut[0]:,} texts had more than {model.sequence_length} tokens and were truncated")
    skipped = f", {len(bad_rows.messages):,} skipped" if bad_rows.messages else ""
    where = "" if config.output == "-" else f": {config.output}"
    note(f"{count:,} example{'s' * (count != 1)} in {time.monotonic() - started:.1f} s{skipped}{where}")
    return count


def note(text):
    """Prints to standard error, since standard output may hold the answers."""
    print(f"  {text}", file=sys.stderr, flush=True)


def parts_of(rows, batch_size):
    """Divides rows into lists: the first is one batch, so that answers come soon; each next one is twice as long."""
    rows, size = iter(rows), batch_size
    while part := list(itertools.islice(rows, size)):
        yield part
        size = min(2 * size, LARGEST_PART * batch_size)


@contextlib.contextmanager
def counting_cut_texts(cut):
    """Counts in `cut[0]` the texts that were too long, instead of a warning for each part; other warnings are shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TextsCutWarning)
        yield
    for warning in caught:
        if isinstance(warning.message, TextsCutWarning):
            cut[0] += warning.message.num_cut
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def texts_of(rows, config):
    """The texts of rows."""
    return [row[config.text_column] for row in rows]


def texts_or_pairs(rows, config):
    """The texts of rows, or their pairs of texts if they have a second one."""
    if config.pair_column not in rows[0]:
        return texts_of(rows, config)
    return texts_of(rows, config), [row[config.pair_column] for row in rows]


def ranked(found, names):
    """The best answer as columns; if more than one was found, also all of them as a list of objects, `candidates`."""
    first = dict(zip(names, found[0], strict=True))
    return first if len(found) == 1 else {**first, "candidates": [dict(zip(names, one, strict=True)) for one in found]}


def several(labels):
    """All labels of a text, or of its words, as columns."""
    return {"predicted": [name for name, _ in labels], "probabilities": [share for _, share in labels]}


def classify(model, rows, config):
    """The class of each text or pair; with multi_label its classes, those above a half."""
    if model.multi_label:
        return list(map(several, model.classify(texts_or_pairs(rows, config), batch_size=config.batch_size)))
    found = model.classify(texts_or_pairs(rows, config), config.top_k, config.batch_size)
    return [ranked(labels, ("predicted", "probability")) for labels in found]


def regress(model, rows, config):
    """The number of each text or pair."""
    values = model.predict(texts_or_pairs(rows, config), batch_size=config.batch_size, verbose=0)
    return [{"predicted": float(value)} for value in values[:, 0]]


def label_words(model, rows, config):
    """The entities of each text, or the label of each word."""
    if config.words_column not in rows[0]:
        found = model.tag(texts_of(rows, config), batch_size=config.batch_size)
        return [{"entities": [entity._asdict() for entity in entities]} for entities in found]
    return list(map(several, model.tag([row[config.words_column] for row in rows], batch_size=config.batch_size)))


def answer(model, rows, config):
    """The answer to each question."""
    questions, contexts = ([row[name] for row in rows] for name in (config.question_column, config.context_column))
    found = model.answer(questions, contexts, config.top_k, batch_size=config.batch_size)
    if format_of(config) == "squad":  # an article's context would be written with each of its questions
        for row in rows:
            del row[config.context_column]
    names = ("answer", "score", "probability", "start", "end", "null_score")
    return [ranked(candidates, names) for candidates in found]


def choose(model, rows, config):
    """The number of the ending of each text."""
    texts, endings = ([row[name] for row in rows] for name in (config.text_column, config.endings_column))
    found = model.choose(texts, endings, config.batch_size)
    return [{"predicted": choice.number, "probabilities": choice.probabilities} for choice in found]


def next_sentence(model, rows, config):
    """The probability that the second text follows the first."""
    found = model.follows(*texts_or_pairs(rows, config), batch_size=config.batch_size)
    return [{"probability": float(probability)} for probability in found]


def fill_mask(model, rows, config):
    """The likeliest words for each mask."""
    found = model.fill_mask(texts_of(rows, config), top_k=config.top_k, batch_size=config.batch_size)
    return [{"masks": [[guess._asdict() for guess in guesses] for guesses in masks]} for masks in found]


def embed(model, rows, config):
    """The vector of each text."""
    vectors = model.embed(texts_of(rows, config), config.batch_size)
    return [{"vector": [float(number) for number in vector]} for vector in vectors]


class Question(typing.NamedTuple):
    """What a task asks: the function that asks a model about rows, and the columns that it needs or may use; see
    `prediction_files.read_rows`."""

    ask: typing.Callable
    needed: tuple = ("text",)
    optional: tuple = ()


QUESTIONS = {
    "classify": Question(classify, optional=("pair",)),
    "regress": Question(regress, optional=("pair",)),
    "label_words": Question(label_words, optional=("words",)),
    "answer": Question(answer, ("question", "context")),
    "choose": Question(choose, ("text", "endings")),
    "next_sentence": Question(next_sentence, ("text", "pair")),
    "fill_mask": Question(fill_mask),
    "embed": Question(embed),
    "vector": Question(embed),
}
