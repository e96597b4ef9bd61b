"""A masked-LM training step of a ModernBERT, 6 layers of width 512: ours, our BERT's of equal size, and Hugging Face's.

    python benchmarks/modernbert_step.py --output DIR
    python benchmarks/modernbert_step.py --output DIR --only jax

All train on the same 2,048 tokens without padding, in rows of 128 or of 1,024 (the variants), of which one in 6.7 is
predicted, with AdamW, weight decay and clipping; without dropout, as ModernBERT trains. Its gated feed-forward
layers have as many weights as BERT's.
"""

from in_turn import OURS, Case, Setting, Target, main, median_seconds
from pretraining_step import VOCABULARY, batch, training_of

TOKENS, LAYERS, WIDTH, HEADS, INNER, GATED = 2048, 6, 512, 8, 2048, 1365
BERT = "our BERT"
LENGTHS = ("128", "1024")


def our_step(setting):
    import keras

    import keras_bert_impl as kbi
    from keras_bert_impl.optimization import BertAdamW

    shape = {"hidden_size": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "max_length": 1024}
    policy = keras.dtype_policies.get(setting.precision)
    if setting.side == BERT:
        dropout = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
        encoder = kbi.BertEncoder(kbi.BertConfig(VOCABULARY, intermediate_size=INNER, **shape, **dropout), dtype=policy)
    else:
        config = kbi.ModernBertConfig(VOCABULARY, intermediate_size=GATED, pad_id=0, **shape)
        encoder = kbi.ModernBertEncoder(config, dtype=policy)
    model = kbi.Pretrainer(encoder, next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=setting.compiled)
    inputs, labels = batch_of(int(setting.variant))
    return lambda: model.train_on_batch(inputs, labels)


def batch_of(length):
    return batch(TOKENS // length, length, round(0.15 * length))


def transformers_step(setting):
    import transformers

    config = transformers.ModernBertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=GATED, pad_token_id=0, attn_implementation="sdpa",
    )  # fmt: skip
    return training_of(transformers.ModernBertForMaskedLM(config), *batch_of(int(setting.variant)))


def measure(setting, warm=3, steps=8):
    """Tokens per second, from the median step."""
    make = transformers_step if setting.side == "transformers" else our_step
    return TOKENS / median_seconds(make(setting), warm, steps)


def case():
    ways = [("tensorflow", True), ("jax", True), ("torch", False)]
    settings = [
        Setting(side, backend, "float32", compiled, length)
        for backend, compiled in ways
        for length in LENGTHS
        for side in (OURS, BERT)
    ]
    settings += [Setting("transformers", "torch", variant=length) for length in LENGTHS]
    targets = [
        Target(BERT, 1.0, where, where)
        for where in ({"backend": backend, "variant": length} for backend, _ in ways for length in LENGTHS)
    ]
    targets += [Target("transformers", 1.5, {"variant": length}, {"variant": length}) for length in LENGTHS]
    title = f"Masked-LM training step of ModernBERT, L{LAYERS} H{WIDTH}, {TOKENS} tokens in rows of 128 or 1,024"
    return Case(title, "tokens", settings, targets, measure)


if __name__ == "__main__":
    main(case(), __file__)
