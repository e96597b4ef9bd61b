"""Self-attention of a layer, by the form that suits backend and device.

| backend, device | without dropout | with dropout on the probabilities |
| --- | --- | --- |
| TensorFlow | the plain form | the plain form |
| JAX and torch, CPU | Keras' fused attention | the plain form |
| torch, CPU, `predict` in bfloat16 | rows by parts (`torch_cpu.py`) | |
| torch, GPU | Keras' (`scaled_dot_product_attention`) | `scaled_dot_product_attention` |
| JAX, GPU | Keras' (cuDNN) | the plain form |
| JAX, TPU | the kernel of `tpu.py` | the kernel of `tpu.py` |

On TensorFlow, Keras' attention is not fused either: it computes the same by `einsum`, takes 1.01 to 1.16 times as long
on a CPU, and in bfloat16, on a processor without instructions for it, its errors are four times as large.

A form that replaces the plain one on an accelerator is compared with it on that very device before it is first used,
see `trial.py`.
"""

import keras

from keras_bert_impl.kernels.attention.placement import Placement, of_distribution, placed
from keras_bert_impl.kernels.attention.plain import AttentionInputs, by_keras, plainly, with_probabilities

__all__ = ["AttentionInputs", "Placement", "attend", "of_distribution", "placed", "plainly", "with_probabilities"]


def attend(inputs):
    """The mixed values (batch, length, width) of an AttentionInputs."""
    form = FORMS[keras.backend.backend()](inputs) or _keras_or_plain(inputs)
    return form(inputs)


def _keras_or_plain(inputs):
    return plainly if inputs.dropout_rate else by_keras


def _of_tensorflow(inputs):
    return plainly


def _of_jax(inputs):
    from keras_bert_impl.kernels.attention import jax_forms

    return jax_forms.form_for(inputs)


def _of_torch(inputs):
    from keras_bert_impl.kernels.attention import torch_form

    return torch_form.form_for(inputs)


# For each backend, the function of the inputs that returns the form, or None for Keras' or the plain one.
FORMS = {"tensorflow": _of_tensorflow, "jax": _of_jax, "torch": _of_torch}
