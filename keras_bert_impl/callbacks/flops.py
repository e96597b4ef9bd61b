"""How much arithmetic a BERT model needs, and how much the machine can do."""

import time

import numpy as np
from keras import ops


def training_flops(config, rows, length, predictions):
    """Floating-point operations of a pre-training step: those of its matrix products, once forward, twice backward.

    Args:
        config: BertConfig.
        rows: number of rows in the batch.
        length: number of tokens in a row, including padding, which is computed, too.
        predictions: number of masked tokens predicted in a row.
    """
    width, inner = config.hidden_size, config.intermediate_size
    block = 2 * length * (4 * width**2 + 2 * width * inner) + 4 * length**2 * width
    heads = 2 * predictions * (width**2 + width * config.vocabulary_size) + 2 * width**2
    return 3 * rows * (config.num_layers * block + heads)


def matrix_product_ceiling(dtype="float32", size=2048, repeats=8):
    """Operations a second of the current backend's matrix product, the best of several: an upper bound for a model."""
    random = np.random.default_rng(0)
    left, right = (ops.cast(random.normal(size=(size, size)), dtype) for _ in range(2))
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        ops.convert_to_numpy(ops.cast(ops.matmul(left, right)[0, 0], "float32"))  # waits for the product
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
