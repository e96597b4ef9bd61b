"""Largest difference between the outputs of a checkpoint on each installed backend and those of transformers.

    python benchmarks/certify.py runs/classifier/model

The texts are those of the tests, on which tokenizers disagree, and one is longer than a row. Each backend computes in a
process of its own. A difference above 1e-4 ends the script with an error. Needs transformers and PyTorch.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
BACKENDS = ("tensorflow", "jax", "torch")
TOLERANCE = 1e-4  # absolute, in float32
BATCH = 8


def largest_difference(directory):
    """That of a checkpoint on the backend of this process."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hostile_texts import HOSTILE_TEXTS
    from reference_models import open_in_transformers

    from keras_bert_impl.checkpoints import open_checkpoint
    from keras_bert_training.commands.export import LOADERS, choose_task

    checkpoint, task = open_checkpoint(directory), choose_task(directory)
    model, theirs = LOADERS[task](directory), open_in_transformers(checkpoint.architecture, directory)
    length = checkpoint.sequence_length or checkpoint.config.max_length
    batches = (HOSTILE_TEXTS[first : first + BATCH] for first in range(0, len(HOSTILE_TEXTS), BATCH))
    return max(
        float(np.abs(found - expected).max())
        for texts in batches
        for found, expected in [outputs(task, model, theirs, rows_of(task, checkpoint.tokenizer, texts, length))]
    )


def rows_of(task, tokenizer, texts, length):
    """The inputs of a task: single texts, pairs, or two choices for each text."""
    from keras_bert_impl.text.tokenizers.rows import ids_from_texts, pack_rows

    pairs = {
        "answer": (["Where is it?"] * len(texts), texts),
        "next_sentence": (texts, ["It slept."] * len(texts)),
        "choose": ([text for text in texts for _ in range(2)], ["It slept.", "It was a dog."] * len(texts)),
    }
    first, second, _ = ids_from_texts(tokenizer, *pairs.get(task, (texts, None)), length)
    rows = pack_rows(tokenizer, first, second, length)
    if task == "choose":
        return {name: array.reshape(len(texts), 2, -1) for name, array in rows.items()}
    if task == "fill_mask":  # at the first token that is not padding
        rows["mask_positions"] = rows["padding_mask"].argmax(axis=1).astype("int32")[:, None]
    return rows


def outputs(task, model, theirs, rows):
    """(ours, those of transformers), without the outputs of padding."""
    from families import of_tokens
    from models.test_heads import logits_of
    from reference_models import outputs_of

    if task in ("embed", "vector"):
        found = getattr(model, "encoder", model).predict_on_batch(rows)["sequence_output"]
        return of_tokens(rows, found), of_tokens(rows, outputs_of(theirs, rows)["last_hidden_state"])
    found = model.predict_on_batch(rows)
    if task == "fill_mask":
        expected = outputs_of(theirs, rows)
        scores = expected.get("logits", expected.get("prediction_logits"))
        return found, np.take_along_axis(scores, rows["mask_positions"][..., None], axis=1)
    expected = logits_of("question_answerer" if task == "answer" else task, theirs, rows)
    is_of_tokens = task in ("answer", "label_words")
    return (of_tokens(rows, found), of_tokens(rows, expected)) if is_of_tokens else (found, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="directory")
    parser.add_argument("--here", action="store_true", help="only the backend of KERAS_BACKEND, in this process")
    options = parser.parse_args()
    if options.here:
        print(largest_difference(options.checkpoint))
        return
    differences = {}
    for backend in filter(importlib.util.find_spec, BACKENDS):
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, __file__, options.checkpoint, "--here"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        differences[backend] = float(done.stdout.split()[-1])
        print(f"{backend:<12}{differences[backend]:.1e}", flush=True)
    if not max(differences.values()) <= TOLERANCE:
        sys.exit(f"The outputs differ by more than {TOLERANCE:g} from those of transformers.")


if __name__ == "__main__":
    main()
