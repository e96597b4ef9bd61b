"""Asks a trained checkpoint about one text after the other.

    keras-bert ask runs/classifier
    keras-bert ask runs/answers --context_file passage.txt
    cat texts.txt | keras-bert ask runs/classifier

What is asked follows from the checkpoint. For files with columns, and answers in JSON or CSV, there is keras-bert
predict.
"""

import contextlib
import functools
import importlib
import pathlib
import sys

import numpy as np

from keras_bert_impl.checkpoints.hub import in_one_line
from keras_bert_impl.console import say
from keras_bert_training.commands.export import choose_task, model_for
from keras_bert_training.commands.packaged_model import with_model
from keras_bert_training.options.ask import AskConfig as AskConfig

END = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"  # what ends the input of a terminal


def run(config):
    """Prints and returns the answers."""
    config = with_model(config)
    task = choose_task(config.model)
    context = context_of(config, task)
    model = model_for(task, config.model)
    prompt, answer = ANSWERS[task]
    answer = functools.partial(answer, model, k=config.top_k)
    if task == "answer":
        if context is None:
            context = next(typed_lines("the text with the answers, in one line"), None)
            if context is None:
                return []
        answer = functools.partial(answer, context=context)
    if config.text is None:
        return converse(prompt, answer)
    found = answer(config.text)
    say(f"  {found}")
    return [found]


def converse(wanted, answer):
    """Answers each line of standard input: typed ones until Ctrl-D, piped ones in one line each.

    A line that cannot be answered gets its error in the place of an answer. An empty line asks nothing: a terminal asks
    again, and of a pipe it gets an empty line, so that lines and answers stay side by side.

    Args:
        wanted: what a terminal asks for, such as "a text".
        answer: function from a line to its answer in one line.

    Returns: the answers, "" for an empty line of a pipe.
    Raises: ValueError after the last piped line, if some of them could not be answered.
    """
    is_typed = sys.stdin.isatty()
    answers, failed = [], 0
    for line in typed_lines(wanted) if is_typed else (line.rstrip("\r\n") for line in sys.stdin):
        try:
            found = answer(line) if line.strip() else ""
        except ValueError as error:
            found, failed = f"error: {in_one_line(error)}", failed + 1
        say(f"  {found}" if is_typed else found)
        answers.append(found)
    if failed and not is_typed:
        raise ValueError(f"{failed:,} of {len(answers):,} lines could not be answered.")
    return answers


def typed_lines(wanted):
    """The lines that somebody types, with the arrow keys and the history of readline, without empty ones."""
    with contextlib.suppress(ImportError):  # Windows has none, and edits lines itself
        importlib.import_module("readline")
    while True:
        try:
            line = input(f"{wanted} ({END} ends): ")
        except (EOFError, KeyboardInterrupt):  # Ctrl-D and Ctrl-C
            print()
            return
        if line.strip():
            yield line


def context_of(config, task):
    """The text in which answers are looked for; None if it is still to be typed.

    Raises: ValueError if there is none and nobody types.
    """
    if config.context_file is not None:
        return pathlib.Path(config.context_file).read_text(encoding="utf-8")
    if config.context is None and task == "answer" and not (sys.stdin.isatty() and config.text is None):
        raise ValueError(f"{config.model} finds answers in a text: give it with --context or --context_file.")
    return config.context


def texts_in(line, least, most):
    """The texts of a line, separated by tabs. Raises ValueError for another number of them."""
    texts = line.split("\t")
    if not least <= len(texts) <= most:
        wanted = str(least) if least == most else f"{least} or more"
        raise ValueError(
            f"{len(texts)} text{'s' * (len(texts) != 1)} in this line, expected {wanted}, with a tab between."
        )
    return texts


def classify(model, line, k):
    """Classes with their probabilities."""
    texts = texts_in(line, 1, 2)
    asked = texts[0] if len(texts) == 1 else ([texts[0]], [texts[1]])
    found = model.classify(asked, None if model.multi_label else k)
    labels = found if len(texts) == 1 else found[0]
    return "   ".join(f"{name} {probability:.1%}" for name, probability in labels)


def regress(model, line, k):
    """The number of a text or pair."""
    texts = texts_in(line, 1, 2)
    asked = texts if len(texts) == 1 else ([texts[0]], [texts[1]])
    return f"{float(model.predict(asked, verbose=0)[0, 0]):.4g}"


def label_words(model, line, k):
    """The entities of a text."""
    found = model.tag(line)
    return "   ".join(f"{one.text} {one.label} {one.score:.1%}" for one in found) or "nothing found"


def answer(model, line, k, context):
    """The answers to a question, the best first."""
    found = model.answer(line, context, top_k=k)
    return "   ".join(f"{one.text or '(no answer)'} {one.probability:.1%}" for one in found) or "(no answer)"


def choose(model, line, k):
    """The best ending of a text."""
    text, *endings = texts_in(line, 3, sys.maxsize)
    found = model.choose(text, endings)
    return f"{endings[found.number]} {found.probabilities[found.number]:.1%}"


def follows(model, line, k):
    """The probability that the second text follows the first."""
    first, second = texts_in(line, 2, 2)
    return f"follows with {float(np.ravel(model.follows(first, second))[0]):.1%}"


def fill(model, line, k, together=False):
    """The likeliest words for each mask, those of several masks with a bar between them, or for all together."""
    guesses = model.fill_mask(line, k, together)
    if together:
        return "   ".join(f"{filled.text} {filled.probability:.1%}" for filled in guesses)
    return "  |  ".join("   ".join(f"{word.token} {word.probability:.1%}" for word in words) for words in guesses)


def similarity(model, line, k):
    """The cosine of two texts."""
    first, second = model.embed(texts_in(line, 2, 2))
    return f"cosine {float(first @ second / np.linalg.norm(first) / np.linalg.norm(second)):.4f}"


# What a terminal asks for, and the function that answers.
ANSWERS = {
    "classify": ("a text, or two with a tab between", classify),
    "regress": ("a text, or two with a tab between", regress),
    "label_words": ("a text", label_words),
    "answer": ("a question", answer),
    "choose": ("a text and its endings, with tabs between", choose),
    "next_sentence": ("two texts with a tab between", follows),
    "fill_mask": ("a text with masks", fill),
    "embed": ("two texts with a tab between", similarity),
    "vector": ("two texts with a tab between", similarity),
}
