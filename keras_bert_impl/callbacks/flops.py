"""How much arithmetic a BERT model needs, and how much the machine can do."""

import collections
import json
import math
import pathlib
import re
import time

import numpy as np
from keras import ops

from keras_bert_impl.distribution import hardware

SMALL_PRODUCT = 256  # 33 MFLOP
LONGEST_MEASUREMENT = 1.0  # seconds, about
PEAKS = pathlib.Path(__file__).with_name("published_peaks.json")


def training_flops(encoder, rows, length, predictions, enhanced_decoder=False):
    """Floating-point operations of a pre-training step: those of its matrix products, once forward, twice backward.

    Args:
        encoder: of any family; also its `families.skeleton`.
        rows: number of rows in the batch.
        length: number of tokens in a row, including padding, which is computed, too.
        predictions: number of masked tokens predicted in a row.
        enhanced_decoder: whether the last block runs twice instead of once, each time projecting hidden states and
            queries by the whole kernel.
    """
    config = encoder.config
    kernels, width = collections.Counter(), config.hidden_size
    for weight in (weight for weight in encoder.weights if weight.path not in encoder.unused_weights):
        block, _, name = weight.path.partition("/")
        # Vectors of distances are projected once for all rows.
        of_row = name.endswith("kernel") and not name.startswith("attention/distance_")
        kernels[block] += math.prod(weight.shape) * of_row
    # Not what turns narrow embeddings into that width, 0.1 % of the arithmetic.
    seen = config.keys_seen(length)
    distances = config.distance_products * (2 * length - 1)
    of_blocks = [
        2 * length * kernels[f"block_{number}"] + (4 * keys + 2 * distances) * length * width
        for number, keys in zip(config.schedule, seen, strict=True)
    ]
    blocks = sum(of_blocks) + 2 * length * kernels["convolution"]
    if enhanced_decoder:  # of hidden states and of queries, a kernel of three times the width
        blocks += of_blocks[-1] + 2 * 2 * length * 3 * width**2
    words, embedding = encoder.token_embedding.input_dim, encoder.token_embedding.output_dim
    heads = 2 * predictions * (width * config.head_has_transform + words) * embedding + 2 * width**2
    return 3 * rows * (blocks + heads)


def device_ceiling(dtype):
    """(FLOP/s that one device can do at most, where the figure is from).

    The published peak for bfloat16 and float16 on the devices in `published_peaks.json`; otherwise what matrix products
    reach, which is below the peak of the device. On a CPU that is the fastest of several products.

    Args:
        dtype: that of the products: float32, bfloat16 or float16.
    """
    kind = hardware.device_kind()
    peak = published_peak(kind) if dtype in ("bfloat16", "float16") else None
    if peak is not None:
        return peak, f"published peak of {kind}"
    if kind == "cpu":
        return matrix_product_ceiling(dtype), "fastest matrix product measured"
    # A product of 2,048 takes a chip microseconds, less than it takes to start it: larger ones, in a row.
    return matrix_product_ceiling(dtype, size=8192, chained=16), f"matrix products measured on {kind}"


def published_peak(kind):
    """FLOP/s in bfloat16 of a kind of device, without sparsity; None if the table does not have it."""
    table = json.loads(PEAKS.read_text(encoding="utf-8"))["devices"]
    found = [row["tflops"] for row in table if re.fullmatch(row["pattern"], kind)]
    return found[0] * 1e12 if found else None


def matrix_product_ceiling(dtype="float32", size=2048, repeats=8, chained=1):
    """Operations a second of the current backend's matrix product, the best of several: an upper bound for a model.

    Args:
        dtype: of the factors.
        size: of the square factors. A processor that computes this type by others may need minutes for a large one:
            where a measurement would take more than a second, they are smaller.
        repeats: measurements.
        chained: products in a measurement, each of the result of the one before.
    """
    if size > SMALL_PRODUCT:
        found = matrix_product_ceiling(dtype, SMALL_PRODUCT, repeats=2)
        while size > SMALL_PRODUCT and 2 * chained * size**3 / found > LONGEST_MEASUREMENT:
            size //= 2
    random = np.random.default_rng(0)
    # So scaled that the products neither grow nor vanish.
    left, right = (ops.cast(random.normal(size=(size, size)) / size**0.5, dtype) for _ in range(2))
    best = float("inf")
    for _ in range(repeats):
        start, product = time.perf_counter(), left
        for _ in range(chained):
            product = ops.matmul(product, right)
        ops.convert_to_numpy(ops.cast(product[0, 0], "float32"))  # waits for the products
        best = min(best, time.perf_counter() - start)
    return 2 * chained * size**3 / best
