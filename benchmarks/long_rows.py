"""A masked-LM training step over one row of 512 to 8,192 tokens: BERT, ModernBERT, Longformer and BigBird.

    python benchmarks/long_rows.py --output DIR                       # all three backends on this machine
    python benchmarks/long_rows.py --output DIR --backends jax tpu    # JAX, and what the TPU compiler says

Four layers of width 256, windows of 128 tokens (BigBird's blocks are of 64), no dropout, AdamW; float32 on a CPU. Of
the backends "tpu" is JAX compiled for a v5e chip: two layers of each base model, in mixed_bfloat16; the time is the
longer one of what the bytes that it moves and its arithmetic take at the published rates. Each figure is taken in a
process of its own; on a CPU the memory is what the process grows by in the first step after one over 64 tokens. Writes
long_rows.json, long_rows.md and long_rows.png.
"""

import argparse
import dataclasses

from in_turn import median_seconds
from windows import MIB, SHORTEST, main, most_resident

VOCABULARY, LAYERS, WIDTH, HEADS, INNER = 8000, 4, 256, 4, 1024
LAYERS_COMPILED = 2  # for a TPU, which takes minutes
SIZES = {
    "BERT": "bert_tiny",
    "ModernBERT": "modernbert_tiny",
    "Longformer": "longformer_tiny",
    "BigBird": "bigbird_tiny",
}
WINDOWS = {"attention_window": 128, "local_attention": 128, "block_size": 64}


def config_of(family, length):
    from keras_bert_impl.configurations.known_families import config_from_name

    shape = {"hidden_size": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "intermediate_size": INNER}
    dropout = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
    config = config_from_name(
        SIZES[family], vocabulary_size=VOCABULARY, pad_id=0, max_length=length, **shape, **dropout
    )
    known = {field.name for field in dataclasses.fields(config)}
    return dataclasses.replace(config, **{name: value for name, value in WINDOWS.items() if name in known})


def steps_of(family, length):
    """A function from a number of tokens to one that trains a step over a row of them."""
    import keras

    from keras_bert_impl import Pretrainer
    from keras_bert_impl.encoders import build_encoder
    from keras_bert_impl.optimization import BertAdamW
    from pretraining_step import batch

    model = Pretrainer(build_encoder(config_of(family, length)), next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=keras.backend.backend() != "torch")

    def step(length):
        inputs, labels = batch(1, length, round(0.15 * length), VOCABULARY)
        return lambda: model.train_on_batch(inputs, labels)

    return step


def measure(family, length):
    """{"seconds": median of a step, "mib": memory that it needs beside weights and optimizer}."""
    step = steps_of(family, length)
    step(SHORTEST)()
    run = step(length)
    grown = most_resident(run)
    return {"seconds": median_seconds(run, warm=1, repeats=3), "mib": grown / MIB}


def compiled_for_tpu(family, length):
    """The same of one v5e chip, for layers of the base model's width, as its compiler tells."""
    import tpu_step

    size = SIZES[family].replace("tiny", "base")
    names = {
        "side": "ours",
        "size": size,
        "layers": LAYERS_COMPILED,
        "length": length,
        "rows": 1,
        "topology": "v5e:2x2",
    }
    arguments = argparse.Namespace(
        **names, dropout=0.0, plain_attention=False, vocabulary_size=30522, moments="float32"
    )
    figures = tpu_step.figures_of(tpu_step.lowered_step(arguments).compile(), arguments)
    seconds = max(figures["arithmetic_ms"], figures["memory_ms"]) / 1000
    return {"seconds": seconds, "mib": figures["temporary_gib"] * 1024}


def measured(family, length, precision):
    return (measure if precision == "float32" else compiled_for_tpu)(family, length)


if __name__ == "__main__":
    finding = "A masked-LM step over one row: attention within windows grows with the length, not with its square"
    main(__doc__, __file__, SIZES, measured, finding)
