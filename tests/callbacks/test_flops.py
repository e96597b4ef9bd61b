import pytest
from tiers import on

from keras_bert_impl import BertConfig, DebertaV2Config, XLNetConfig
from keras_bert_impl.callbacks import flops
from keras_bert_impl.callbacks.flops import device_ceiling, matrix_product_ceiling, published_peak, training_flops
from keras_bert_impl.distribution import hardware
from keras_bert_impl.encoders import skeleton


def test_a_training_sequence_takes_what_is_published():
    # BERT-large takes 0.241 TFLOP a sequence of 128 tokens and 1.02 of 512, base 0.070 and 0.301.
    for name, short, long in (("bert_base", 0.070, 0.301), ("bert_large", 0.241, 1.02)):
        encoder = skeleton(BertConfig.from_name(name))
        assert training_flops(encoder, 1, 128, 20) / 1e12 == pytest.approx(short, rel=0.02)
        assert training_flops(encoder, 1, 512, 77) / 1e12 == pytest.approx(long, rel=0.02)


def test_flops_by_hand():
    config = BertConfig(11, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=5)
    # Products of query, key, value and output; feed-forward; logits and mixing; the heads.
    by_hand = 5 * (4 * 36 + 2 * 42) + 2 * 25 * 6 + 3 * (36 + 66) + 36
    assert training_flops(skeleton(config), 2, 5, 3) == 3 * 2 * 2 * by_hand


def test_the_ceiling_is_a_positive_rate():
    assert matrix_product_ceiling(size=64, repeats=2) > 1e6
    assert matrix_product_ceiling("bfloat16", size=64, repeats=2, chained=3) > 1e6


def test_products_with_distances_and_a_convolution_count():
    shape = {"hidden_size": 6, "num_layers": 2, "num_heads": 2, "intermediate_size": 7}
    counts = [
        training_flops(skeleton(config), 2, 5, 3)
        for config in (
            BertConfig(11, **shape),
            DebertaV2Config(11, num_buckets=4, max_distance=9, **shape),
            DebertaV2Config(11, num_buckets=4, max_distance=9, convolution=3, **shape),
        )
    ]
    # Of each layer, queries and keys with nine distances: two products of 5 x 6 x 9.
    assert counts[1] - counts[0] == 3 * 2 * 2 * (2 * 2 * 5 * 6 * 9)
    assert counts[2] - counts[1] == 3 * 2 * (2 * 5 * 18 * 6)


def test_an_xlnet_counts_the_distances_of_its_queries_and_a_head_without_transform():
    shape = {"hidden_size": 6, "num_layers": 2, "num_heads": 2, "intermediate_size": 7, "max_length": 9}
    bert, xlnet = (
        training_flops(skeleton(config), 2, 5, 3)
        for config in (BertConfig(11, **shape), XLNetConfig(11, **shape, pad_id=5))
    )
    # Of each layer, queries with nine distances; the vectors of these are projected once for all rows.
    assert xlnet - bert == 3 * 2 * (2 * (2 * 5 * 6 * 9) - 2 * 3 * 36)


def test_an_enhanced_mask_decoder_counts_the_last_block_twice():
    shape = {"hidden_size": 6, "num_heads": 2, "intermediate_size": 7, "max_length": 9}
    fields = {"num_buckets": 4, "max_distance": 9, **shape}
    two, three = (skeleton(DebertaV2Config(11, num_layers=layers, **fields)) for layers in (2, 3))
    block = training_flops(three, 2, 5, 0) - training_flops(two, 2, 5, 0)
    added = training_flops(two, 2, 5, 0, enhanced_decoder=True) - training_flops(two, 2, 5, 0)
    # Queries, keys and values of 5 x 6 states: in each of two passes once more, by one kernel.
    assert added == block + 3 * 2 * (2 * 2 * 5 * 6 * 18)


@pytest.mark.parametrize(
    ("kind", "tflops"),
    [
        ("TPU v5 lite", 197),
        ("TPU v5", 459),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA L4", 121),
        ("NVIDIA L40S", 362),
    ],
)
def test_the_ceiling_of_a_known_device_is_its_published_peak(kind, tflops, monkeypatch):
    monkeypatch.setattr(hardware, "device_kind", lambda: kind)
    assert device_ceiling("bfloat16") == (tflops * 1e12, f"published peak of {kind}")


def test_what_is_not_published_is_measured_with_products_that_a_chip_notices(monkeypatch):
    calls = []
    monkeypatch.setattr(flops, "matrix_product_ceiling", lambda *given, **more: calls.append((given, more)) or 7.0)
    for kind, dtype in (("A chip of next year", "bfloat16"), ("TPU v4", "float32"), ("cpu", "bfloat16")):
        monkeypatch.setattr(hardware, "device_kind", lambda kind=kind: kind)
        assert device_ceiling(dtype)[0] == 7.0
    chained = {"size": 8192, "chained": 16}
    assert calls == [(("bfloat16",), chained), (("float32",), chained), (("bfloat16",), {})]


@on("jax")  # plan-tpu is JAX's
def test_the_planner_has_the_same_peaks():
    from keras_bert_training.commands.plan_tpu import CHIPS

    kinds = {"v4": "TPU v4", "v5e": "TPU v5 lite", "v5p": "TPU v5", "v6e": "TPU v6 lite"}
    assert {name: published_peak(kinds[name]) for name in CHIPS} == {name: chip.flops for name, chip in CHIPS.items()}
