"""The families of encoders, in small shapes, for the tests that every family passes."""

import numpy as np
import pytest
from conftest import without

import keras_bert_impl as kbi

SIZES = {
    "vocabulary_size": 53,
    "hidden_size": 15,
    "num_layers": 2,
    "num_heads": 3,
    "intermediate_size": 21,
    "max_length": 11,
}
# Rotary positions need heads of an even width. The window reaches one token to each side, so that the last padded token
# of the small batch sees none that is not padding.
MODERN = {**SIZES, "hidden_size": 12, "pad_id": 1, "global_every": 2, "local_attention": 2}
MODERN_SIZES = {**SIZES, "hidden_size": 12, "pad_id": 1}
EURO = {**MODERN_SIZES, "num_heads": 6, "num_key_value_heads": 3}
WINDOWS = ("sliding_attention", "full_attention")
XLNET = {**SIZES, "hidden_size": 12, "pad_id": 5}  # sinusoids come in pairs
# Only rows of over 49 tokens have blocks that see some others: in those, a text has other vectors in a row that is
# padded to another number of blocks. The separator is that of `made_tokenizers`.
BIGBIRD = {"sep_id": 5, "block_size": 7, "num_random_blocks": 1}
# Configurations by name: a family, or a form of it that has other weights or another order of layers.
CONFIGS = {
    "Bert": kbi.BertConfig(**SIZES),
    "DistilBert": kbi.DistilBertConfig(**SIZES),
    "Electra": kbi.ElectraConfig(**SIZES, embedding_size=9),
    "Electra, embeddings as wide as the blocks": kbi.ElectraConfig(**SIZES, embedding_size=15),
    "Roberta": kbi.RobertaConfig(**SIZES),
    "Roberta, two segments, padding 0": kbi.RobertaConfig(**SIZES, num_segments=2, pad_id=0),
    "Longformer": kbi.LongformerConfig(**SIZES, attention_window=4),
    "BigBird": kbi.BigBirdConfig(**SIZES, **BIGBIRD, random_blocks="first_block"),
    "BigBird, whole rows, no bias of queries": kbi.BigBirdConfig(
        **SIZES, **BIGBIRD, attention_type="original_full", query_bias=False, rescale_embeddings=True
    ),
    "Longformer, windows of two widths": kbi.LongformerConfig(**SIZES, attention_window=(4, 8)),
    "MPNet": kbi.MPNetConfig(**SIZES),
    "ModernBert": kbi.ModernBertConfig(**MODERN),
    "ModernBert, three of four layers see a window": kbi.ModernBertConfig(
        **{**MODERN, "num_layers": 5, "global_every": 4, "local_attention": 4}, classifier_pooling="mean"
    ),
    "Deberta": kbi.DebertaConfig(**SIZES, max_distance=7),
    "DebertaV2": kbi.DebertaV2Config(**SIZES, num_buckets=8, max_distance=11),
    "DebertaV2, with a convolution": kbi.DebertaV2Config(**SIZES, num_buckets=8, max_distance=11, convolution=3),
    "XLNet": kbi.XLNetConfig(**XLNET),
    "XLNet, distances up to three, gelu_tanh": kbi.XLNetConfig(**XLNET, max_distance=3, activation="gelu_tanh"),
    "XLMRoberta": kbi.XLMRobertaConfig(**SIZES),
    "Albert": kbi.AlbertConfig(**SIZES, embedding_size=9),
    "Albert, two groups of two": kbi.AlbertConfig(
        **{**SIZES, "num_layers": 3}, embedding_size=15, num_groups=2, layers_per_group=2, activation="gelu"
    ),
    "EuroBert": kbi.EuroBertConfig(**EURO),
    "EuroBert, one head of keys, first token, tied, positions divided": kbi.EuroBertConfig(
        **{**EURO, "num_key_value_heads": 1}, classifier_pooling="bos", tie_word_embeddings=True, rotary_factor=1.7
    ),
    "Ultrabert": kbi.UltrabertConfig(**MODERN_SIZES, sliding_window=1, prediction_head_size=9, layer_types=WINDOWS),
    "Ultrabert, mean, two heads of keys": kbi.UltrabertConfig(
        **{**MODERN_SIZES, "num_heads": 6, "num_layers": 4},
        num_key_value_heads=2,
        classifier_pooling="mean",
        sliding_window=2,
        prediction_head_size=5,
        local_theta=77.0,
    ),
    "NomicBert": kbi.NomicBertConfig(**{**MODERN_SIZES, "pad_id": 0}),
    "NomicBert, rows longer than trained": kbi.NomicBertConfig(
        **{**MODERN_SIZES, "hidden_size": 24}, trained_length=5, rotary_factor=2.0
    ),
    "Gte": kbi.GteConfig(**MODERN_SIZES),
    "Gte, no segments": kbi.GteConfig(**MODERN_SIZES, num_segments=0),
    "Gte, two segments": kbi.GteConfig(**MODERN_SIZES, num_segments=2, rotary_theta=50.0),
    "Ernie": kbi.ErnieConfig(**SIZES),
    "Ernie, with tasks and gelu": kbi.ErnieConfig(**SIZES, activation="gelu", has_task_embedding=True, num_tasks=5),
}
FAMILIES = [name for name in CONFIGS if "," not in name]
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
every_family = pytest.mark.parametrize("config", [CONFIGS[name] for name in FAMILIES], ids=FAMILIES)


def rows_for(config, batch):
    """The rows of the fixture `small_batch` without their masks, with the padding token of a configuration where they
    are padded: RoBERTa's positions depend on it in transformers. Of a Longformer or BigBird as pairs. Of a family whose
    rows end in <cls> they are padded on the left, since transformers takes the last place for <cls>."""
    rows = without(batch, "mask_positions")
    if encoder_of(config).cls_is_last:
        padding = len(rows["padding_mask"][0]) - rows["padding_mask"].sum(1)
        rows = {name: np.stack(list(map(np.roll, array, padding))) for name, array in rows.items()}
    ids = np.where(rows["padding_mask"] == 1, rows["token_ids"], config.pad_id).astype("int32")
    if hasattr(config, "sep_id"):  # a Longformer's and a BigBird's heads ask where texts end: after two tokens, last
        lengths = rows["padding_mask"].sum(axis=1)
        ids[:, 2:4] = ids[np.arange(len(ids)), lengths - 1] = config.sep_id
    return {**rows, "token_ids": ids}


def of_tokens(rows, array):
    """The array (batch, length, ...) with 0 for padding, whose states in transformers depend on the form of its
    attention."""
    return array * rows["padding_mask"].reshape(*rows["padding_mask"].shape, *[1] * (array.ndim - 2))


def encoder_of(config):
    """The encoder class of a configuration."""
    return getattr(kbi, f"{config.class_prefix()}Encoder")
