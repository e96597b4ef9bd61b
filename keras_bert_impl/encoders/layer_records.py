"""Records which layers were frozen or quantized, or got LoRA, after a model was built.

Keras writes this into the configuration of each layer. The models here are configured by their constructors' arguments
alone, and the constructors build every layer again: without this record, a model loaded from its `.keras` file would
have all layers trainable and could not hold quantized weights or updates of LoRA.
"""

import json

import keras


def layer_records(model):
    """The record for `get_config` of a model whose constructor builds its layers: a dict, empty for one just built."""
    layers = [layer for layer in model._flatten_layers() if _name_of(layer, model) is not None]
    states = {
        "frozen_layers": [_name_of(layer, model) for layer in layers if not layer.trainable],
        "frozen_weights": [weight.path for weight in model.weights if not weight.trainable],
        "quantized": _quantized(layers),
        "lora": {layer.path: [layer.lora_rank, layer.lora_alpha] for layer in layers if _has_lora(layer)},
    }
    return {"layer_states": states} if any(states.values()) else {}


def restore_layer_records(model, config):
    """Freezes and quantizes the layers of a model just built as `layer_records` recorded; call before `compile`."""
    states = config.get("layer_states")
    if states is None:
        return model
    for group in states["quantized"]:
        keras.Model.quantize(  # not the model's own method, which changes the default of a mode
            model,
            group["mode"],
            config=keras.saving.deserialize_keras_object(group["config"]),
            filters=lambda layer, paths=frozenset(group["paths"]): (
                layer.path in paths and layer.quantization_mode is None
            ),
        )
    for layer in model._flatten_layers():
        if layer.path in states.get("lora", ()) and not _has_lora(layer):
            layer.enable_lora(*states["lora"][layer.path])
    # Parents come before their children here, and Keras' setter passes the value on to all children.
    for layer in model._flatten_layers():
        name = _name_of(layer, model)
        is_frozen = name in states["frozen_layers"]
        if name is not None and layer.trainable == is_frozen:
            layer.trainable = not is_frozen
    for weight in model.weights:
        weight.trainable = weight.path not in states["frozen_weights"]
    return model


def without_layer_records(config):
    """The constructor's arguments in a configuration, without the record of its layers."""
    return {name: value for name, value in config.items() if name != "layer_states"}


def _name_of(layer, model):
    """The name of a layer in the record: its path; "" for the model; None for models in it, which have their own."""
    if layer is model:
        return ""
    return None if isinstance(layer, keras.Model) else layer.path


def _quantized(layers):
    """Paths of the quantized layers, grouped by mode and configuration."""
    groups = {}
    for layer in (layer for layer in layers if layer.quantization_mode is not None):
        config = keras.saving.serialize_keras_object(layer.quantization_config)
        group = {"mode": layer.quantization_mode, "config": config, "paths": []}
        groups.setdefault(json.dumps(group), group)["paths"].append(layer.path)
    return list(groups.values())


def _has_lora(layer):
    return getattr(layer, "lora_enabled", False)
