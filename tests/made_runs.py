"""What the tests' fine-tuning runs start from: a small checkpoint, and options for `finetune.run`."""

import keras
from conftest import WORDS

import keras_bert_impl as kbi
from keras_bert_training import finetuning


def write_checkpoint(path):
    """Writes a checkpoint of 64 positions with its tokenizer; returns its path."""
    keras.utils.set_random_seed(7)  # the same weights whichever test comes first
    # Weights ten times as large as BERT's start: at this width all texts would have nearly equal vectors.
    config = kbi.BertConfig(
        len(WORDS),
        hidden_size=12,
        num_layers=2,
        num_heads=3,
        intermediate_size=21,
        max_length=64,
        initializer_range=0.2,
    )
    kbi.Pretrainer(kbi.BertEncoder(config)).save_pretrained(path)
    kbi.WordPieceTokenizer(WORDS).save_pretrained(path)
    return path


def config_of(checkpoint, tmp_path, task, data="data", output="run", **options):
    # Only JAX has to compile: otherwise it would compile each operation separately.
    jit_compile = "on" if keras.backend.backend() == "jax" else "off"
    usual = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-3, "sequence_length": 40, "jit_compile": jit_compile}
    return finetuning.FinetuneConfig(
        str(tmp_path / data), str(checkpoint), str(tmp_path / output), task, **{**usual, **options}
    )


def arrays_of(path):
    """The weights of a checkpoint's encoder, by their paths."""
    return {w.path: keras.ops.convert_to_numpy(w) for w in kbi.BertEncoder.from_pretrained(path).weights}
