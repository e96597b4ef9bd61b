"""What was done to single layers after a model was built: frozen, or quantized.

Keras writes it into the description of each layer. The models here are described by the arguments of their
constructors, which build every layer anew: without this record a model would come back from its `.keras` file with
everything trainable, and without room for quantized weights.
"""

import keras


def layer_states(model):
    """The record for `get_config` of a model whose constructor builds its layers: a dict, empty for one just built.

    A layer with LoRA is recorded as the plain layer that Keras saves: update and kernel in one.
    """
    layers = [layer for layer in model._flatten_layers() if _name_of(layer, model) is not None]
    states = {
        "frozen_layers": [_name_of(layer, model) for layer in layers if not layer.trainable],
        "frozen_weights": [
            weight.path for weight in model.weights if not weight.trainable and weight.path not in _lora_kernels(layers)
        ],
        "quantized": _quantized(layers),
    }
    return {"layer_states": states} if any(states.values()) else {}


def restore_layer_states(model, config):
    """Does to the layers of a model just built what `layer_states` found, if anything; before it is compiled."""
    states = config.get("layer_states")
    if states is None:
        return model
    for group in states["quantized"]:
        keras.Model.quantize(  # as it is recorded, whatever a model's own method makes of a mode
            model,
            group["mode"],
            config=keras.saving.deserialize_keras_object(group["config"]),
            filters=lambda layer, paths=frozenset(group["paths"]): (
                layer.path in paths and layer.quantization_mode is None
            ),
        )
    # Parents come before their children here, and Keras' setter passes the value on to all children.
    for layer in model._flatten_layers():
        name = _name_of(layer, model)
        is_frozen = name in states["frozen_layers"]
        if name is not None and layer.trainable == is_frozen:
            layer.trainable = not is_frozen
    for weight in model.weights:
        weight.trainable = weight.path not in states["frozen_weights"]
    return model


def without_layer_states(config):
    """The arguments of the constructor alone."""
    return {name: value for name, value in config.items() if name != "layer_states"}


def _name_of(layer, model):
    """What a layer is called here: its path; "" for the model; None for models in it, which tell it themselves."""
    if layer is model:
        return ""
    return None if isinstance(layer, keras.Model) else layer.path


def _quantized(layers):
    """Paths of the quantized layers, those of one mode and configuration together."""
    groups = []
    for layer in layers:
        if layer.quantization_mode is not None:
            how = {
                "mode": layer.quantization_mode,
                "config": keras.saving.serialize_keras_object(layer.quantization_config),
            }
            group = next((group for group in groups if how.items() <= group.items()), None)
            if group is None:
                group = {**how, "paths": []}
                groups.append(group)
            group["paths"].append(layer.path)
    return groups


def _lora_kernels(layers):
    """Paths of the kernels that LoRA froze: they and their updates are saved as one."""
    return {layer._kernel.path for layer in layers if getattr(layer, "lora_enabled", False)}
