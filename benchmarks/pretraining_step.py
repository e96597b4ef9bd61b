"""A masked-LM training step of 4 layers, width 512: ours, KerasHub's and Hugging Face's.

    python benchmarks/pretraining_step.py --output DIR
    python benchmarks/pretraining_step.py --output DIR --only jax

All train on the same 16 rows of 128 tokens with 20 predictions, with AdamW, weight decay, clipping and dropout 0.1.
"""

import numpy as np

import keras_hub_models
from in_turn import OURS, Case, Setting, Target, main, median_seconds

VOCABULARY, LAYERS, WIDTH, HEADS, INNER = 30522, 4, 512, 8, 2048
ROWS, LENGTH, PREDICTIONS = 16, 128, 20
MASK_ID = 103  # of BERT's vocabulary


def batch(rows=ROWS, length=LENGTH, predictions=PREDICTIONS, vocabulary=VOCABULARY):
    """(inputs, labels) of random tokens, as preprocessing.pretraining_rows makes them: words by Zipf's law, of which
    four fifths of those to be predicted are hidden. What the gradient of the words takes depends on how often the most
    frequent ones occur."""
    random = np.random.default_rng(0)
    token_ids = (999 + np.exp(random.uniform(0, np.log(vocabulary - 999), (rows, length)))).astype("int32")
    positions = np.sort(random.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)[:, :predictions])
    words = np.take_along_axis(token_ids, positions, axis=1)
    is_hidden = random.random(positions.shape) < 0.8
    np.put_along_axis(token_ids, positions, np.where(is_hidden, MASK_ID, words), axis=1)
    inputs = {
        "token_ids": token_ids,
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": np.ones_like(token_ids),
        "mask_positions": positions.astype("int32"),
    }
    labels = {
        "mask_ids": words,
        "mask_weights": np.ones(positions.shape, "float32"),
    }
    return inputs, labels


def our_config():
    from keras_bert_impl import BertConfig

    return BertConfig(
        VOCABULARY, hidden_size=WIDTH, num_layers=LAYERS, num_heads=HEADS, intermediate_size=INNER,
        hidden_dropout_rate=0.1, attention_dropout_rate=0.1,
    )  # fmt: skip


def our_model(config, precision, jit, next_sentence=False, **options):
    import keras

    from keras_bert_impl import BertEncoder, Pretrainer
    from keras_bert_impl.optimization import BertAdamW

    encoder = BertEncoder(config, dtype=keras.dtype_policies.get(precision), **options)
    model = Pretrainer(encoder, next_sentence=next_sentence)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=jit)
    return model


def our_step(precision, jit):
    model, (inputs, labels) = our_model(our_config(), precision, jit), batch()
    return lambda: model.train_on_batch(inputs, labels)


def keras_hub_step(precision, jit):
    model, (inputs, labels) = keras_hub_models.masked_lm(our_config(), precision, jit), batch()
    return lambda: model.train_on_batch(inputs, labels["mask_ids"], sample_weight=labels["mask_weights"])


def transformers_step(precision, jit):
    return transformers_training(our_config(), *batch(), precision, jit)


def transformers_training(config, inputs, labels, precision, jit, device="cpu"):
    """`training_of` Hugging Face's BertForMaskedLM of this shape."""
    import transformers

    net = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=config.vocabulary_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            intermediate_size=config.intermediate_size,
            hidden_dropout_prob=config.hidden_dropout_rate,
            attention_probs_dropout_prob=config.attention_dropout_rate,
            attn_implementation="sdpa",
        )
    )
    return training_of(net, inputs, labels, precision, jit, device)


def training_of(net, inputs, labels, precision="float32", jit=False, device="cpu"):
    """A function that trains a masked-LM model of Hugging Face for one step and returns the loss tensor."""
    import torch

    net = net.to(device).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    run = torch.compile(net) if jit else net
    targets = np.full(inputs["token_ids"].shape, -100)
    np.put_along_axis(targets, inputs["mask_positions"], labels["mask_ids"], axis=1)
    arrays = {"input_ids": inputs["token_ids"], "attention_mask": inputs["padding_mask"], "labels": targets}
    arrays = {name: torch.from_numpy(np.asarray(array, "int64")).to(device) for name, array in arrays.items()}

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            loss = run(**arrays).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


STEPS = {OURS: our_step, "KerasHub": keras_hub_step, "transformers": transformers_step}


def measure(setting, warm=4, steps=12):
    """Sequences per second, from the median step."""
    return ROWS / median_seconds(STEPS[setting.side](setting.precision, setting.compiled), warm, steps)


def case():
    from keras_bert_impl.callbacks.flops import training_flops
    from keras_bert_impl.encoders import skeleton

    # JAX always compiles; on torch "compiled" is torch.compile, which fails in Keras' trainer and is ours alone.
    ways = [("tensorflow", False), ("tensorflow", True), ("jax", True), ("torch", False)]
    settings = [
        Setting(side, backend, precision, compiled)
        for backend, compiled in ways
        for precision in ("float32", "mixed_bfloat16")
        for side in (OURS, "KerasHub")
    ]
    settings += [Setting(OURS, "torch", precision, True) for precision in ("float32", "mixed_bfloat16")]
    settings += [
        Setting("transformers", "torch", precision, compiled)
        for precision, compiled in (("float32", False), ("bfloat16", False), ("bfloat16", True))
    ]
    targets = [
        Target("KerasHub", 1.5),
        *(Target("KerasHub", 1.2, {"backend": name}, {"backend": name}) for name in ("tensorflow", "jax", "torch")),
        Target("transformers", 2.5, {"compiled": True}),
        Target("transformers", 2.5, {"compiled": False}),
    ]
    return Case(
        f"Masked-LM training step, L{LAYERS} H{WIDTH}, {ROWS} x {LENGTH}, {PREDICTIONS} predictions",
        "sequences",
        settings,
        targets,
        measure,
        lambda setting: training_flops(skeleton(our_config()), 1, LENGTH, PREDICTIONS),
    )


if __name__ == "__main__":
    main(case(), __file__)
