"""JAX and torch do all they do without TensorFlow: its import is blocked here."""

import os
import pathlib
import subprocess
import sys

import keras
import pytest
from conftest import WORDS
from made_tasks import write_cola
from tiers import on

pytestmark = on("jax", "torch")

BLOCKED = """
import importlib.machinery
import sys

class WithoutTensorFlow(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, *arguments):
        blocked = name.split(".")[0] in ("tensorflow", "tensorflow_text")
        return None if blocked else super().find_spec(name, *arguments)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = WithoutTensorFlow
"""

RAW_TEXTS = """
import numpy as np
import keras_bert_impl as kbi

config = kbi.BertConfig(
    vocabulary_size=11, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=5
)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on".split()
classifier = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=kbi.WordPieceTokenizer(words))
classifier.fit(["the cat sat", "the dog"], np.array([0, 1]), verbose=0)

pretrainer = kbi.Pretrainer(kbi.BertEncoder(config))
pretrainer.compile(optimizer=kbi.optimization.BertAdamW(1e-3))
inputs = {**classifier.rows(["the cat sat", "the dog"]), "mask_positions": np.array([[1], [2]])}
labels = {
    "mask_ids": np.array([[5], [7]]),
    "mask_weights": np.ones((2, 1), "float32"),
    "next_sentence_labels": np.array([0, 1]),
}
pretrainer.fit(inputs, labels, verbose=0)
for model in (classifier, pretrainer):
    assert int(model.optimizer.iterations) == 1
"""

COMMANDS = """
from keras_bert_training import data_preparation, finetuning, pretraining

data_preparation.run(
    data_preparation.PrepareConfig(
        "data", "text.txt", vocab="vocab.txt", sequence_length=16, predictions_per_sequence=2
    )
)
shape = {"size": "bert_tiny", "num_layers": 1, "hidden_size": 12, "num_heads": 2, "intermediate_size": 20}
pretraining.run(
    pretraining.PretrainConfig(
        "data", "run", steps=4, steps_per_round=2, batch_size=4, validation_batches=1, jit_compile="off", **shape
    )
)
finetuning.run(
    finetuning.FinetuneConfig(
        "task", "run/encoder", "finetuned", "cola", epochs=1, batch_size=4, sequence_length=16, jit_compile="off"
    )
)
"""


@pytest.mark.full
def test_texts_and_arrays_are_learnt_from_and_data_is_prepared_pretrained_on_and_finetuned(tmp_path):
    sentences = ["the cat sat on a mat.", "a dog ran in the rain.", "it is good, red and blue."]
    documents = ["\n".join(sentences[number % 3 :] + sentences) for number in range(100)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    write_cola(tmp_path / "task")
    place = str(pathlib.Path(__file__).parents[1])
    environment = {**os.environ, "KERAS_BACKEND": keras.backend.backend(), "PYTHONPATH": place}
    program = BLOCKED + RAW_TEXTS + COMMANDS + 'assert "tensorflow" not in sys.modules\n'
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, cwd=tmp_path)
    assert (tmp_path / "finetuned" / "model" / "model.safetensors").is_file()
    assert list((tmp_path / "run" / "tensorboard" / "validation").glob("events.out.tfevents.*"))
