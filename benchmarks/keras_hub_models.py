"""KerasHub's masked LM of the sizes of one of our configurations."""

# By the model_type of a configuration: how the names of KerasHub's classes begin, and what its backbone takes besides.
FAMILIES = {
    "bert": ("Bert", lambda config: {}),
    "roberta": ("Roberta", lambda config: {}),
    "xlm-roberta": ("XLMRoberta", lambda config: {}),
    "distilbert": ("DistilBert", lambda config: {}),
    "albert": ("Albert", lambda config: {"embedding_dim": config.embedding_size}),
    "deberta-v2": ("DebertaV3", lambda config: {"bucket_size": 256}),
}


def masked_lm(config, precision, jit):
    """The masked LM of a configuration, compiled as in KerasHub's own default `compile`, with weight decay and clipping
    as in BERT's training.

    Raises: SystemExit for a family of which KerasHub has no masked LM.
    """
    import keras
    import keras_hub

    if config.model_type not in FAMILIES:
        raise SystemExit(f"KerasHub has no masked LM of {config.model_type}; it has {', '.join(FAMILIES)}.")
    name, more = FAMILIES[config.model_type]
    backbone = getattr(keras_hub.models, f"{name}Backbone")(
        config.vocabulary_size, num_layers=config.num_layers, num_heads=config.num_heads, hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size, dropout=config.hidden_dropout_rate,
        max_sequence_length=config.max_length, dtype=precision, **more(config),
    )  # fmt: skip
    model = getattr(keras_hub.models, f"{name}MaskedLM")(backbone, preprocessor=None)
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit,
    )
    return model
