"""Writes tests/golden/files_of_0.1.tar.xz: files of version 0.1.0, which every later version opens.

    KERAS_BACKEND=torch PYTHONPATH=.:tests python tests/golden/make_old_files.py

It is made again only by a version whose own files differ, under that version's name.
"""

import contextlib
import json
import pathlib
import tarfile
import tempfile

import keras
import pytest
from interrupted_runs import interrupted
from made_runs import write_checkpoint

import keras_bert_impl as kbi
from keras_bert_training import data_preparation, pretraining

ARCHIVE = pathlib.Path(__file__).parent / "files_of_0.1.tar.xz"
SENTENCES = ("The cat sat on the mat.", "A dog ran in the rain.", "It was a good day, red and blue.", "The mat is wet.")
TEXTS = ["the cat sat on the mat", "a dog ran in the rain , good and blue", "red", "the mat is bad"]
SIZE = {"size": "bert_tiny", "num_layers": 1, "hidden_size": 12, "num_heads": 2, "intermediate_size": 20}
LEFT_OUT = {"whole", "text.txt", "tensorboard", "report.html"}


def pretraining_config(output="run"):
    """Of a run over the data in the current directory, 12 steps long."""
    options = {"steps": 12, "steps_per_round": 3, "batch_size": 4, "validation_batches": 1, "jit_compile": "off"}
    return pretraining.PretrainConfig("data", output, **SIZE, **options)


def write_files():
    """Into the current directory."""
    pathlib.Path("text.txt").write_text("\n\n".join("\n".join(SENTENCES[n % 4 :] + SENTENCES) for n in range(60)))
    sizes = {"vocabulary_size": 60, "sequence_length": 16, "predictions_per_sequence": 2}
    data_preparation.run(data_preparation.PrepareConfig("data", "text.txt", **sizes))
    pretraining.run(pretraining_config("whole"))
    with pytest.MonkeyPatch.context() as patch:
        interrupted(pretraining.run, pretraining_config(), patch, 7)
    write_checkpoint("checkpoint")
    keras.utils.set_random_seed(7)
    classifier = kbi.TextClassifier.from_pretrained("checkpoint", num_classes=2, sequence_length=16)
    classifier.enable_lora(2)
    classifier.fit(TEXTS, [0, 1, 1, 0], epochs=3, verbose=0)
    classifier.save("classifier.keras")
    answerer = kbi.QuestionAnswerer.from_pretrained("checkpoint", sequence_length=24)
    answerer.save("answerer.keras")
    expected = {
        "logits": classifier.predict(TEXTS, verbose=0).tolist(),
        "trainable_weights": len(classifier.trainable_weights),
        "steps_of_the_optimizer": int(classifier.optimizer.iterations),
        "history": json.loads(pathlib.Path("whole/history.json").read_text()),
    }
    pathlib.Path("expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files()
        names = [path for path in sorted(pathlib.Path().rglob("*")) if path.is_file() and not LEFT_OUT & {*path.parts}]
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            for name in names:
                archive.add(name)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes")
