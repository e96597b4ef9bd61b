"""A masked-LM training step of a DeBERTa of version 3, 4 layers of width 512: ours, KerasHub's and Hugging Face's.

    python benchmarks/deberta_step.py --output DIR
    python benchmarks/deberta_step.py --output DIR --only jax

All train on the same 8 rows of 128 tokens with 20 predictions, with AdamW, weight decay, clipping and dropout 0.1. The
variant "gather" is ours with its products picked by an index, as both peers pick theirs.
"""

import numpy as np

import keras_hub_models
from in_turn import OURS, Case, Setting, Target, main, median_seconds
from pretraining_step import HEADS, INNER, LAYERS, LENGTH, PREDICTIONS, VOCABULARY, WIDTH, batch, training_of

ROWS = 8


def config_of(layers=LAYERS, dropout=0.1, vocabulary=VOCABULARY, width=WIDTH, heads=HEADS, inner=INNER):
    from keras_bert_impl import DebertaV2Config

    return DebertaV2Config(
        vocabulary, hidden_size=width, num_layers=layers, num_heads=heads, intermediate_size=inner,
        hidden_dropout_rate=dropout, attention_dropout_rate=dropout,
    )  # fmt: skip


def by_gather(products):
    """`encoders.deberta.at_distances` by an index for each number."""
    from keras import ops

    length = ops.shape(products)[-2]
    places = np.arange(length)
    index = (length - 1 - (places[:, None] - places))[None, None].astype("int32")
    return ops.take_along_axis(products, ops.broadcast_to(index, (*products.shape[:3], length)), axis=-1)


def our_model(config, precision, jit, gathers=False):
    import keras

    from keras_bert_impl import DebertaV2Encoder, Pretrainer
    from keras_bert_impl.encoders import deberta
    from keras_bert_impl.optimization import BertAdamW

    if gathers:
        deberta.at_distances = by_gather
    encoder = DebertaV2Encoder(config, dtype=keras.dtype_policies.get(precision))
    model = Pretrainer(encoder, next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=jit)
    return model


def our_step(setting):
    inputs, labels = batch(ROWS)
    model = our_model(config_of(), setting.precision, setting.compiled, setting.variant == "gather")
    return lambda: model.train_on_batch(inputs, labels)


def keras_hub_step(setting):
    inputs, labels = batch(ROWS)
    del inputs["segment_ids"]
    model = keras_hub_models.masked_lm(config_of(), setting.precision, setting.compiled)
    return lambda: model.train_on_batch(inputs, labels["mask_ids"], sample_weight=labels["mask_weights"])


def transformers_step(setting):
    import transformers

    config = config_of()
    theirs = {**config.to_huggingface(), "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    return training_of(transformers.DebertaV2ForMaskedLM(transformers.DebertaV2Config(**theirs)), *batch(ROWS))


STEPS = {OURS: our_step, "KerasHub": keras_hub_step, "transformers": transformers_step}


def measure(setting, warm=3, steps=10):
    """Sequences per second, from the median step."""
    return ROWS / median_seconds(STEPS[setting.side](setting), warm, steps)


def case():
    ways = [("tensorflow", True), ("jax", True), ("torch", False)]
    settings = [
        Setting(side, backend, "float32", compiled, variant)
        for backend, compiled in ways
        for side, variant in ((OURS, ""), (OURS, "gather"), ("KerasHub", ""))
    ]
    settings.append(Setting("transformers", "torch"))
    targets = [
        *(
            Target("KerasHub", 1.5, {"backend": name}, {"backend": name, "variant": ""})
            for name in ("tensorflow", "jax", "torch")
        ),
        Target("transformers", 1.5, None, {"variant": ""}),
    ]
    title = f"Masked-LM training step of DeBERTa, L{LAYERS} H{WIDTH}, {ROWS} x {LENGTH}, {PREDICTIONS} predictions"
    return Case(title, "sequences", settings, targets, measure)


if __name__ == "__main__":
    main(case(), __file__)
