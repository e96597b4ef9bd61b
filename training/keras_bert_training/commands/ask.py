"""Asks a trained checkpoint about one text after the other.

    keras-bert ask runs/classifier
    keras-bert ask runs/answers --context_file passage.txt
    cat texts.txt | keras-bert ask runs/classifier

What is asked follows from the checkpoint. For files with columns, and answers in JSON or CSV, there is keras-bert
predict.
"""

import functools
import pathlib
import sys

import numpy as np

from keras_bert_impl.console import say
from keras_bert_training.commands.conversation import converse, typed_lines
from keras_bert_training.commands.export import choose_task, model_for
from keras_bert_training.commands.fill_mask import guesses_in_one_line
from keras_bert_training.commands.packaged_model import with_model
from keras_bert_training.options.ask import AskConfig as AskConfig


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


def fill(model, line, k):
    """The likeliest words for each mask."""
    return guesses_in_one_line(model.fill_mask(line, k))


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
