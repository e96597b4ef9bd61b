"""Which weights of a model learn: frozen layers, and low-rank updates instead of whole kernels (LoRA)."""

import keras


def freeze_layers(model, count):
    """Freezes the embeddings and the first `count` transformer blocks; to be called before `compile`.

    Args:
        model: an encoder or a model over one.
        count: 0 leaves everything as it is; the number of blocks leaves head and pooler alone to learn.

    Raises: ValueError if the encoder has fewer blocks.
    """
    encoder = getattr(model, "encoder", model)
    if not 0 <= count <= encoder.config.num_layers:
        raise ValueError(f"Cannot freeze {count} blocks: the encoder has {encoder.config.num_layers}.")
    if count:
        names = ["token_embedding", "position_embedding", "segment_embedding", "embeddings_norm"]
        for name in [*names, *(f"block_{index}" for index in range(count))]:
            encoder.get_layer(name).trainable = False


def enable_lora(model, rank):
    """Freezes the encoder but for updates of `rank` to the kernels of its blocks (Hu et al. 2022).

    Query, key and value are one kernel here and share the update's first factor; head and pooler learn whole. To be
    called before `compile`; after training `merge_lora` makes a plain model of it.

    Raises: ValueError for a rank below 1.
    """
    if rank < 1:
        raise ValueError(f"The rank of a LoRA update must be at least 1, not {rank}.")
    encoder = getattr(model, "encoder", model)
    freeze_layers(model, encoder.config.num_layers)
    for index in range(encoder.config.num_layers):
        block = encoder.get_layer(f"block_{index}")
        block.trainable = True
        for layer in _flat(block):
            if isinstance(layer, keras.layers.Dense):
                layer.enable_lora(rank)
                layer.bias.trainable = False
            elif isinstance(layer, keras.layers.LayerNormalization):
                layer.trainable = False


def merge_lora(model):
    """Adds the updates to the kernels and empties them: weights by their names then hold what was learnt.

    Those of `enable_lora` above, and any that Keras' own `enable_lora` gave to a dense layer or an embedding.
    """
    encoder = getattr(model, "encoder", model)
    # A model may have layers besides its encoder's, and does not hold an encoder whose graph it continues.
    for layer in {id(layer): layer for layer in (*_flat(encoder), *_flat(model))}.values():
        if getattr(layer, "lora_enabled", False):
            name = "kernel" if isinstance(layer, keras.layers.Dense) else "embeddings"
            second = getattr(layer, f"lora_{name}_b")
            # Of a layer with LoRA, `kernel` is kernel and update together. Keras lets its own save do this only;
            # `_kernel` is the weight below the update.
            getattr(layer, f"_{name}").assign(keras.ops.convert_to_numpy(getattr(layer, name)))
            second.assign(keras.ops.zeros(second.shape))


def _flat(layer):
    return list(layer._flatten_layers(include_self=False))
