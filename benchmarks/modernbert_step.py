"""A masked-LM training step of the encoders with rotary positions, 6 layers of width 512: ours, our BERT's of equal
size, and Hugging Face's.

    python benchmarks/modernbert_step.py --output DIR
    python benchmarks/modernbert_step.py --output DIR --only jax

All train on the same 2,048 tokens without padding, of which one in 6.7 is predicted, with AdamW, weight decay and
clipping; without dropout, as ModernBERT trains. ModernBERT has rows of 128 or of 1,024 (the variants), the others rows
of 128; EuroBERT has half as many heads of keys as of queries. Gated feed-forward layers have as many weights as BERT's.
"""

from in_turn import OURS, Case, Setting, Target, main, median_seconds
from pretraining_step import VOCABULARY, batch, training_of

TOKENS, LAYERS, WIDTH, HEADS, INNER, GATED = 2048, 6, 512, 8, 2048, 1365
BERT = "our BERT"
LENGTHS = ("128", "1024")
OTHERS = {
    "EuroBert": {"num_key_value_heads": HEADS // 2, "tie_word_embeddings": True},
    "Ultrabert": {"tie_word_embeddings": True, "prediction_head_size": WIDTH},
    "NomicBert": {},
    "Gte": {"num_segments": 0, "hidden_dropout_rate": 0.0},
}


def config_of(setting):
    import keras_bert_impl as kbi

    shape = {"hidden_size": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "max_length": 1024, "pad_id": 0}
    if setting.side == BERT:
        dropout = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
        return kbi.BertConfig(VOCABULARY, intermediate_size=INNER, **shape, **dropout)
    name = setting.variant if setting.variant in OTHERS else "ModernBert"
    return getattr(kbi, f"{name}Config")(VOCABULARY, intermediate_size=GATED, **shape, **OTHERS.get(name, {}))


def our_step(setting):
    import keras

    import keras_bert_impl as kbi
    from keras_bert_impl.encoders import build_encoder
    from keras_bert_impl.optimization import BertAdamW

    encoder = build_encoder(config_of(setting), dtype=keras.dtype_policies.get(setting.precision))
    model = kbi.Pretrainer(encoder, next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=setting.compiled)
    inputs, labels = batch_of(setting)
    return lambda: model.train_on_batch(inputs, labels)


def batch_of(setting):
    length = 128 if setting.variant in OTHERS else int(setting.variant)
    return batch(TOKENS // length, length, round(0.15 * length))


def transformers_step(setting):
    import transformers

    config, name = config_of(setting), config_of(setting).class_prefix()
    theirs = getattr(transformers, f"{name}Config")(**config.to_huggingface(), attn_implementation="sdpa")
    return training_of(getattr(transformers, f"{name}ForMaskedLM")(theirs), *batch_of(setting))


def measure(setting, warm=3, steps=8):
    """Tokens per second, from the median step."""
    make = transformers_step if setting.side == "transformers" else our_step
    return TOKENS / median_seconds(make(setting), warm, steps)


def case():
    ways = [("tensorflow", True), ("jax", True), ("torch", False)]
    variants = [*((length, (OURS, BERT)) for length in LENGTHS), *((name, (OURS,)) for name in OTHERS)]
    settings = [
        Setting(side, backend, "float32", compiled, variant)
        for backend, compiled in ways
        for variant, sides in variants
        for side in sides
    ]
    settings += [Setting("transformers", "torch", variant=variant) for variant, _ in variants]
    targets = [
        Target(BERT, 1.0, where, where)
        for where in ({"backend": backend, "variant": length} for backend, _ in ways for length in LENGTHS)
    ]
    targets += [Target("transformers", 1.5, {"variant": length}, {"variant": length}) for length in LENGTHS]
    targets += [Target("transformers", 1.0, {"variant": name}, {"variant": name}) for name in OTHERS]
    title = f"Masked-LM training step with rotary positions, L{LAYERS} H{WIDTH}, {TOKENS} tokens"
    return Case(title, "tokens", settings, targets, measure)


if __name__ == "__main__":
    main(case(), __file__)
