"""Self-attention of a layer, by the form that suits backend and device.

| backend, device | without dropout | with dropout on the probabilities |
| --- | --- | --- |
| TensorFlow; all on a CPU | Keras' fused attention | the plain form |
| torch, CPU, `predict` in bfloat16 | rows by parts (`torch_cpu.py`) | |
| torch, GPU | Keras' (`scaled_dot_product_attention`) | `scaled_dot_product_attention` |
| JAX, GPU | Keras' (cuDNN) | the plain form |
| JAX, TPU | the kernel of `tpu.py` | the kernel of `tpu.py` |

A form that replaces the plain one on an accelerator is compared with it on that very device before it is first used,
see `trial.py`.
"""

import keras

from keras_bert_impl.kernels.attention.placement import Placement, of_distribution, placed
from keras_bert_impl.kernels.attention.plain import AttentionInputs, by_keras, plainly, with_probabilities

__all__ = ["AttentionInputs", "Placement", "attend", "of_distribution", "placed", "plainly", "with_probabilities"]


def attend(inputs):
    """The mixed values (batch, length, width) of an AttentionInputs."""
    form = ACCELERATED.get(keras.backend.backend(), _none)(inputs)
    if form is None:
        form = plainly if inputs.dropout_rate else by_keras
    return form(inputs)


def _none(inputs):
    return None


def _of_jax(inputs):
    from keras_bert_impl.kernels.attention import jax_forms

    return jax_forms.form_for(inputs)


def _of_torch(inputs):
    from keras_bert_impl.kernels.attention import torch_form

    return torch_form.form_for(inputs)


# For each backend, the function of the inputs that returns the form for its accelerator, or None if there is none.
ACCELERATED = {"jax": _of_jax, "torch": _of_torch}
