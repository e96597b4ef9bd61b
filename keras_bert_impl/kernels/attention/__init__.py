"""Self-attention of a layer, by the form that suits backend and device.

| backend, device | without dropout | with dropout on the probabilities |
| --- | --- | --- |
| TensorFlow; JAX, CPU | the plain form | the plain form |
| torch, CPU | `scaled_dot_product_attention` (`torch_form.py`) | the plain form |
| torch, CPU, `predict` in bfloat16 | rows by parts | |
| torch, GPU | `scaled_dot_product_attention` | the same |
| torch, GPU, windows and packed rows of more than 1,024 tokens | flex attention (`torch_flex.py`) | as below |
| JAX, GPU | Keras' (cuDNN) | the plain form |
| JAX, TPU | the kernel of `tpu.py` | the kernel of `tpu.py` |
| JAX, TPU, rows that are longer than its kernel takes | Splash (`tpu_long.py`) | the plain form |
| a window in long rows, elsewhere | blocks of `windows.py` | blocks of `windows.py` |
| blocks that see some others (BigBird) | `sparse_blocks.py`, on torch by its forms above | the same: it drops none |

On TensorFlow, Keras' attention is not fused either: it computes the same by `einsum`, takes 1.01 to 1.16 times as long
on a CPU, and in bfloat16, on a processor without instructions for it, its errors are four times as large. Nor is JAX's
on a CPU: with 128 to 1,024 tokens it takes 1.1 to 1.9 times as long forward, and 1.1 to 1.65 times with gradients.

The kernels on a TPU, and on a GPU torch's flex attention and its function with dropout, are compared with the plain
form on that very device before they are first used, see `device_check.py`. What Keras itself computes without dropout
is not: cuDNN's attention in JAX. JAX reaches cuDNN's dropout only by functions that are private to it,
hence the plain form there.
"""

import functools

import keras

from keras_bert_impl.kernels.attention import windows
from keras_bert_impl.kernels.attention.global_tokens import at_places, with_global_queries, with_global_rows
from keras_bert_impl.kernels.attention.placement import Placement, of_distribution, placed, placement
from keras_bert_impl.kernels.attention.plain import (
    AttentionInputs,
    by_keras,
    by_ops,
    of_fused,
    turned,
    with_probabilities,
)
from keras_bert_impl.kernels.attention.sparse_blocks import SparseBlocks, by_counts, by_sparse_blocks, with_counts
from keras_bert_impl.kernels.attention.windows import numbers_of


def attend(inputs):
    """The mixed values (batch, length, width) of an AttentionInputs."""
    return form_for(inputs)(inputs)


def attend_sparsely(inputs, layout):
    """The mixed values (batch, length, width) of an AttentionInputs whose blocks see one another as the SparseBlocks
    says."""
    if keras.backend.backend() != "torch":
        return by_sparse_blocks(inputs, layout)  # XLA makes of the plain form what torch needs a fused one for
    is_known = isinstance(inputs.query.shape[1], int)
    return by_sparse_blocks(inputs, layout, attend) if is_known else by_counts(inputs, layout)


def form_for(inputs):
    """The function of an AttentionInputs that suits backend and device; warns if it is not the one that is meant for
    them."""
    backend = keras.backend.backend()
    form = OF_DEVICES[backend](inputs) if backend in OF_DEVICES else None
    if form is None and windows.suits(inputs):
        # XLA makes of the plain form what torch needs a fused one for.
        return functools.partial(windows.by_blocks, attend=attend) if backend == "torch" else windows.by_blocks
    return form or (by_ops if inputs.dropout_rate or backend == "tensorflow" else by_keras)


def _of_jax(inputs):
    from keras_bert_impl.kernels.attention import jax_forms

    return jax_forms.form_for(inputs)


def _of_torch(inputs):
    from keras_bert_impl.kernels.attention import torch_form

    return torch_form.form_for(inputs)


# For a backend, the function of the inputs that returns the form for a device in particular, or None.
OF_DEVICES = {"jax": _of_jax, "torch": _of_torch}
