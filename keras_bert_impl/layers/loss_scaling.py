"""A warning for float16 training without loss scaling."""

import warnings

import keras


def warn_of_unscaled_loss(layer):
    """Warns if the model that calls a layer of mixed_float16 was compiled for training without loss scaling.

    Keras scales the loss of a model whose own dtype policy is mixed_float16. The models here have their encoder's
    policy; a model that users build on an encoder has Keras' global policy, whatever its layers compute in.
    """
    if layer.dtype_policy.name != "mixed_float16":
        return
    # The outermost layer of this call. In a training step of JAX it is the layer itself, since no model is called as
    # such; but before the first step Keras calls the model as in prediction, to infer its shapes.
    model = layer._get_call_context().entry_layer
    optimizer = getattr(model, "optimizer", None)
    is_scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    if optimizer is None or is_scaled or optimizer.loss_scale_factor:
        return
    warnings.warn(
        f"The model {model.name!r} has layers of mixed_float16, but its optimizer does not scale the loss: gradients "
        "below 6e-8 become 0 in training. Set model.dtype_policy = 'mixed_float16' before model.compile(), or compile "
        "with keras.optimizers.LossScaleOptimizer(optimizer).",
        stacklevel=2,
    )
