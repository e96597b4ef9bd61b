"""An answer of the model in the package; then every step once: from raw text to a pre-trained encoder, a fine-tuned
classifier and a SavedModel that takes strings.

    keras-bert quickstart                                   # the default corpus
    keras-bert quickstart --corpus path/to/text [--language de]
    KERAS_BACKEND=jax keras-bert quickstart

Every stage runs another command's code with a recipe of training/recipes/quickstart; a finished stage is not repeated.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unicodedata

import keras

from keras_bert_impl.checkpoints.hub import PACKAGED, PACKAGED_DIRECTORY
from keras_bert_impl.console import say
from keras_bert_impl.export import export_saved_model
from keras_bert_impl.text.corpora.sentences import CHARACTER_WITHOUT_SPACES
from keras_bert_training import data_preparation, finetuning, pretraining
from keras_bert_training.commands import fill_mask
from keras_bert_training.commands.export import model_for
from keras_bert_training.options.quickstart import QuickstartConfig
from keras_bert_training.runs import parse
from keras_bert_training.tasks import text_classification

SENTENCE = "I have not seen him for many [MASK]."


def run(config):
    """Runs the stages one after the other; returns the figures of each."""
    home = pathlib.Path(config.output) / corpus_name(config.corpus)
    backend, minutes = keras.backend.backend(), config.minutes
    data, made = home / "data", home / (backend if minutes is None else f"{backend}_{minutes:g}_minutes")
    length = [] if minutes is None else ["--max_minutes", minutes]
    corpus = [] if config.corpus is None else ["--input", config.corpus]
    for name in ("text_format", "text_field", "language"):
        if getattr(config, name) != getattr(QuickstartConfig, name):  # otherwise the recipe's value is used
            corpus += [f"--{name}", getattr(config, name)]
    start = time.monotonic()

    say(f"0.   {PACKAGED}, the model in the package, fills in a mask")
    fill_mask.fill_and_print(model_for("fill_mask", PACKAGED_DIRECTORY), SENTENCE, top_k=5)

    say("1-3. Text to documents, vocabulary and pre-training examples")
    data_preparation.run(read(config, "prepare_data", data_preparation.PrepareConfig, "--output", data, *corpus))

    say(f"4-5. Pre-training: masked words ({minutes_since(start)})")
    options = ("--data", data, "--output", made / "pretrain", *length)
    figures = {"pretraining": pretraining.run(read(config, "pretrain", pretraining.PretrainConfig, *options))}
    encoder = made / "pretrain" / "encoder"

    say(f"6.   Filling in masks in sentences it has never seen ({minutes_since(start)})")
    model = model_for("fill_mask", encoder)
    for text, word in masked_sentences(data, model.tokenizer, count=5):
        say(f"     the word was: {word}")
        fill_mask.fill_and_print(model, text, top_k=5)

    # For a corpus with a single source there is nothing to classify.
    task, trained, texts = "fill_mask", encoder, ["The [MASK] is here.", "It is [MASK] of them."]
    if (data / "sentences").is_dir():
        task, trained = "classify", made / "classifier" / "model"
        texts = text_classification.read_examples(data / "sentences" / "test.jsonl").texts
        texts = texts[:: len(texts) // 3][:3]
        say(f"7.   Fine-tuning: where is this sentence from? ({minutes_since(start)})")
        for name, switch in (("classifier", []), ("classifier_from_scratch", ["--from_scratch=true"])):
            options = ("--data", data / "sentences", "--model", encoder, "--output", made / name, *switch)
            figures[name] = finetuning.run(read(config, "finetune", finetuning.FinetuneConfig, *options))
        say(
            f"     accuracy from the pre-trained encoder {figures['classifier']['accuracy']:.1%}, "
            f"from random weights {figures['classifier_from_scratch']['accuracy']:.1%}, "
            f"by chance {1 / len(figures['classifier']['class_names']):.1%}"
        )
    served = export(task, trained, made / "saved_model", texts, start)
    print_places(made, encoder, None if trained == encoder else made / "classifier", served, start)
    return figures


def read(config, recipe, config_class, *options):
    """The configuration of a stage: its recipe, and options as on its command line."""
    path = pathlib.Path(config.recipes) / f"{recipe}.yaml"
    return parse(config_class, ["--config", str(path), *map(str, options)])


def corpus_name(corpus):
    """The folder name of a corpus: its own name, and a hash of its path to tell corpora of the same name apart."""
    if corpus is None:
        return "python_docs"
    path = pathlib.Path(corpus).absolute()
    digest = hashlib.blake2b(str(path).encode(), digest_size=3).hexdigest()
    return re.sub(r"\W+", "_", pathlib.Path(corpus).name) + f"_{digest}"


def minutes_since(start):
    """ "after N minutes", counted from a time of `time.monotonic`."""
    return f"after {(time.monotonic() - start) / 60:.1f} minutes"


def program():
    """`keras-bert`, with the folder of the running Python if lines could not be copied without it."""
    folder = os.path.relpath(os.path.dirname(sys.executable)) + os.sep if sys.prefix.startswith(os.getcwd()) else ""
    return f"{folder}keras-bert"


def masked_sentences(data, tokenizer, count):
    """Pairs (sentence with [MASK], masked word) from short sentences of the test split.

    The masked word is near the middle and a single token; in a script without spaces between words it is a character.
    """
    found = []
    for sentence in (data / "held_out.txt").read_text(encoding="utf-8").splitlines():
        has_spaces = CHARACTER_WITHOUT_SPACES.search(sentence) is None
        words = sentence.split() if has_spaces else list(sentence)
        places = [
            place
            for place, word in enumerate(words[:-1])
            if len(word) > 3 * has_spaces
            and tokenizer.token_to_id(word.lower()) is not None
            # Letters and marks: Hindi's vowels are marks, for which `str.isalpha` is False.
            and all(character.isalpha() or unicodedata.category(character)[0] == "M" for character in word)
        ]
        if 8 <= len(words) <= (16 if has_spaces else 32) and places and "[MASK]" not in sentence:
            place = places[len(places) // 2]
            masked = [*words[:place], "[MASK]", *words[place + 1 :]]
            found.append(((" " if has_spaces else "").join(masked), words[place]))
    return found[:count]  # the file is in random order


PREDICT = """
import json, sys
import tensorflow as tf
import tensorflow_text
assert "keras_bert_impl" not in sys.modules
texts = json.load(sys.stdin)
outputs = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](text=tf.constant(texts))
kind = "label" if "label" in outputs else "tokens"
guesses, probabilities = outputs[kind].numpy(), outputs["probabilities"].numpy()
for text, guess, probability in zip(texts, guesses, probabilities):
    guess = guess.ravel()[0] if kind == "tokens" else guess
    print(f"     {guess.decode():<12} {probability.max():6.1%}   {text[:80]}")
"""


def export(task, checkpoint, directory, texts, start):
    """Writes the SavedModel unless it is up to date, and prints its predictions in a process without this library.

    Returns its directory, or None without TensorFlow.
    """
    say(f"8.   A SavedModel that takes strings ({minutes_since(start)})")
    missing = [name for name in ("tensorflow", "tensorflow_text") if importlib.util.find_spec(name) is None]
    if missing:
        say(f"     left out: it needs {' and '.join(missing)}, see pip install 'keras_bert_impl[tensorflow]'")
        return None
    trained = (checkpoint / "model.safetensors").stat().st_mtime
    if not directory.is_dir() or directory.stat().st_mtime < trained:
        export_saved_model(model_for(task, checkpoint), directory, overwrite=True)
    say("     a new process with tensorflow and tensorflow_text alone predicts:")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", PREDICT, directory]
    process = subprocess.run(command, input=json.dumps(texts), env=environment, text=True, capture_output=True)
    if process.returncode:
        raise ValueError(f"The SavedModel {directory} failed to predict in a new process:\n{process.stderr}")
    say(process.stdout.rstrip())
    return directory


def print_places(made, encoder, classifier, served, start):
    """Prints where the results are, and what to try next."""
    say(f"9.   Done {minutes_since(start)}. Everything is in {made.parent}:")
    places = {
        "pre-trained encoder, a Hugging Face checkpoint": encoder,
        "report of the pre-training": made / "pretrain" / "report.html",
        "fine-tuned classifier": classifier and classifier / "model",
        "its report": classifier and classifier / "report.html",
        "SavedModel": served,
    }
    for what, path in places.items():
        if path is not None:
            say(f"     {what:<46} {path}")
    say("     Next:")
    say("     The same with your own text: --corpus path/to/text (.txt, .jsonl, also compressed; make: CORPUS=...)")
    say("     The same on another backend: KERAS_BACKEND=jax or torch before the command (make: BACKEND=jax)")
    say(f'     {program()} fill-mask --model {encoder} --text "It returns a [MASK] of integers."')
    say(f"     {program()} pretrain --config quickstart/pretrain \\")
    say(f"         --data {made.parent / 'data'} --size modernbert_small --learning_rate 5e-4 \\")
    say("         --max_minutes 120 --output runs/modernbert_small")
    if served is not None:
        installed = importlib.util.find_spec("tensorflow_serving") is not None
        first = "" if installed else " (first: pip install 'keras_bert_impl[tensorflow,serving]')"
        say(f"     A page that asks the model{first}:")
        say(f"     {program()} serve --model quickstart={served}")
        say("     http://localhost:8501/")
