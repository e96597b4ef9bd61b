"""A warning where float16 is trained with a loss that nobody scales."""

import warnings

import keras


def warn_of_unscaled_loss(layer):
    """Warns if the model that calls a layer of mixed_float16 was compiled to train and leaves its loss as it is.

    Keras scales the loss of a model whose own dtype policy is mixed_float16. That of the models here is their
    encoder's; that of a model somebody else builds on an encoder is Keras' global one, whatever its layers compute in.
    """
    if layer.dtype_policy.name != "mixed_float16":
        return
    # The outermost layer of this call. A training step of JAX calls no model as such, and it is then the layer itself;
    # but before the first step Keras calls the model to see its shapes, as if to predict.
    model = layer._get_call_context().entry_layer
    optimizer = getattr(model, "optimizer", None)
    is_scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    if optimizer is None or is_scaled or optimizer.loss_scale_factor:
        return
    warnings.warn(
        f"The model {model.name!r} has layers of mixed_float16, but its optimizer does not scale the loss: in training "
        "gradients below 6e-8 become 0. Set model.dtype_policy = 'mixed_float16' before model.compile(), or compile "
        "with keras.optimizers.LossScaleOptimizer(optimizer).",
        stacklevel=2,
    )
