"""A pre-training step of the published sizes on a GPU or TPU, in bfloat16: ours on JAX and torch, and Hugging Face's.

    python benchmarks/accelerator.py --output DIR
    python benchmarks/accelerator.py --output DIR --only 'jax bert_large'

Needs keras with JAX or torch (transformers for the peer) and no TensorFlow. All sides compute the same: 15 % of the
tokens predicted, AdamW with decay and clipping, no dropout, so that attention is fused (flash attention where the
backend has it; scaled_dot_product_attention under torch.compile in transformers). The share is of the chip's own matrix
products, measured in the same run. What does not fit into memory is shown as an error.
"""

import time

import numpy as np

from in_turn import OURS, Case, Setting, Target, main

# Rows that fit into 80 GB, by size and length.
ROWS = {("bert_base", 128): 256, ("bert_base", 512): 64, ("bert_large", 128): 128, ("bert_large", 512): 32}
STEPS = 20


def variant(size, length):
    return f"{size} {ROWS[size, length]} x {length}"


def shape_of(setting):
    """(size, rows, length) of a setting."""
    size, rows, _, length = setting.variant.split()
    return size, int(rows), int(length)


def config_of(size):
    from keras_bert_impl import BertConfig

    return BertConfig.from_name(size, vocabulary_size=30522, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)


def predictions_of(length):
    return round(0.15 * length)


def batch(rows, length):
    """Inputs and labels of random tokens, as preprocessing.pretraining makes them."""
    random = np.random.default_rng(0)
    token_ids = random.integers(1000, 30522, (rows, length)).astype("int32")
    positions = np.sort(random.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)[:, : predictions_of(length)])
    inputs = {
        "token_ids": token_ids,
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": np.ones_like(token_ids),
        "mask_positions": positions.astype("int32"),
    }
    labels = {
        "mask_ids": np.take_along_axis(token_ids, positions, axis=1),
        "mask_weights": np.ones(positions.shape, "float32"),
    }
    return inputs, labels


def our_seconds(setting):
    """Seconds of a step within `fit`, which does not wait for each."""
    import keras

    from keras_bert_impl import BertEncoder, BertPretrainer
    from keras_bert_impl.optimization import BertAdamW

    size, rows, length = shape_of(setting)
    one = batch(rows, length)

    class SameBatch(keras.utils.PyDataset):
        num_batches = STEPS

        def __getitem__(self, index):
            return one

    policy = keras.dtype_policies.get(setting.precision)
    model = BertPretrainer(BertEncoder(config_of(size), dtype=policy), next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=setting.compiled)
    model.fit(SameBatch(), epochs=1, verbose=0)
    start = time.perf_counter()
    model.fit(SameBatch(), epochs=1, verbose=0)
    return (time.perf_counter() - start) / STEPS


def their_seconds(setting):
    import torch
    import transformers

    size, rows, length = shape_of(setting)
    config = config_of(size)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=config.vocabulary_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            intermediate_size=config.intermediate_size,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="sdpa",
        )
    )
    net = net.to(device).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    run = torch.compile(net) if setting.compiled else net
    inputs, labels = batch(rows, length)
    targets = np.full((rows, length), -100)
    np.put_along_axis(targets, inputs["mask_positions"], labels["mask_ids"], axis=1)
    arrays = {"input_ids": inputs["token_ids"], "attention_mask": inputs["padding_mask"], "labels": targets}
    arrays = {name: torch.from_numpy(np.asarray(array, "int64")).to(device) for name, array in arrays.items()}

    def steps():
        for _ in range(STEPS):
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16):
                loss = run(**arrays).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        return loss.item()  # waits for the device

    steps()
    start = time.perf_counter()
    steps()
    return (time.perf_counter() - start) / STEPS


def measure(setting):
    """Tokens a second."""
    _, rows, length = shape_of(setting)
    return rows * length / (our_seconds if setting.side == OURS else their_seconds)(setting)


def flops_per_token(setting):
    from keras_bert_impl.flops import training_flops

    size, rows, length = shape_of(setting)
    return training_flops(config_of(size), rows, length, predictions_of(length)) / (rows * length)


def case():
    variants = [variant(size, length) for size, length in ROWS]
    settings, targets = [], []
    for name in variants:
        settings += [
            Setting(OURS, "jax", "mixed_bfloat16", True, name),
            Setting(OURS, "torch", "mixed_bfloat16", False, name),
            Setting("transformers", "torch", "bfloat16", True, name),
        ]
        targets.append(Target("transformers", 1.3, {"variant": name}, {"variant": name}))
    return Case("Pre-training step on an accelerator", "tokens", settings, targets, measure, flops_per_token)


if __name__ == "__main__":
    main(case(), __file__)
