"""Which weights of a model are trained: frozen layers, and low-rank updates instead of whole kernels (LoRA).

These functions are also methods of every model.
"""

import keras

from keras_bert_impl.layers.kept_lora import KeptLora


def freeze_layers(model, count):  # noqa: D417, a method of `model`
    """Freezes the embeddings and the first `count` transformer blocks. Call it before `compile`.

    Args:
        count (int): number of blocks; layers that share their weights are one block. 0 changes nothing; with all blocks
            frozen, only head and pooler are trained.

    Raises: ValueError if there are fewer blocks.
    """
    encoder = getattr(model, "encoder", model)
    if not 0 <= count <= encoder.config.num_blocks:
        raise ValueError(f"{count} blocks cannot be frozen: the encoder has {encoder.config.num_blocks}.")
    if count:
        blocks = {f"block_{index}" for index in range(count, encoder.config.num_blocks)}
        trained = {"pooler", *blocks, *(["final_norm"] if blocks else [])}
        for layer in encoder.layers:
            # All others are embeddings, or the first blocks: which embeddings there are depends on the family.
            if layer.name not in trained:
                layer.trainable = False
        _forget_steps(model, encoder)


def enable_lora(model, rank):  # noqa: D417, a method of `model`
    """Freezes the encoder, and trains low-rank updates of its blocks' kernels instead (LoRA, Hu et al. 2022).

    Head and pooler are trained fully; frozen blocks get no update. Call it before `compile`, and call `merge_lora`
    after training, to save the model.

    Args:
        rank (int): rank of the updates.

    Raises: ValueError for a rank below 1, if all blocks are frozen or have LoRA already, and for a model in float8,
        which Keras does not support here.
    """
    encoder = getattr(model, "encoder", model)
    blocks = [encoder.get_layer(f"block_{index}") for index in range(encoder.config.num_blocks)]
    blocks = [block for block in blocks if block.trainable]
    is_float8 = any(layer.quantization_mode == "float8" for layer in _flat(model))
    has_lora = any(getattr(layer, "lora_enabled", False) for block in blocks for layer in _flat(block))
    if rank < 1 or is_float8 or has_lora or not blocks:
        raise ValueError(
            "LoRA needs a rank of at least 1, and blocks that are not frozen, have no LoRA yet and are not quantized "
            "to float8."
        )
    freeze_layers(model, encoder.config.num_blocks)
    for block in blocks:
        block.trainable = True
        for layer in _flat(block):
            if isinstance(layer, keras.layers.Dense):
                layer.enable_lora(rank)
            elif isinstance(layer, keras.layers.LayerNormalization):
                layer.trainable = False
        for weight in block.trainable_weights:  # biases, of dense layers and of DeBERTa's attention itself
            if not weight.name.startswith("lora_"):
                weight.trainable = False


def merge_lora(model):
    """Adds the LoRA updates to the kernels and sets them to zero, so that a checkpoint can be saved.

    It merges the updates of `enable_lora`, and those of Keras' own `enable_lora` of a dense layer or an embedding.
    """
    encoder = getattr(model, "encoder", model)
    # Both, since a model may have layers besides its encoder's, and not every model tracks its encoder as a layer.
    for layer in {id(layer): layer for layer in (*_flat(encoder), *_flat(model))}.values():
        if getattr(layer, "lora_enabled", False):
            first = next(weight for weight in layer.weights if weight.name.startswith("lora_"))
            values, merged = keras.ops.convert_to_numpy(first), {}
            # Keras saves kernel and update together, where it rounds what is quantized anew, by another scale, and
            # sets both factors to zero when it loads them. The first one keeps its random values, to learn from.
            of_keras = super(KeptLora, layer) if isinstance(layer, KeptLora) else layer
            of_keras.save_own_variables(merged)
            of_keras.load_own_variables({name: keras.ops.convert_to_numpy(merged[name]) for name in merged})
            first.assign(values)


def _forget_steps(*models):
    """As `compile` does: TensorFlow would go on with the steps that it has traced, which train and compute the old
    weights."""
    for model in models:
        model.train_function = model.test_function = model.predict_function = None


def _flat(layer):
    return list(layer._flatten_layers(include_self=False))
