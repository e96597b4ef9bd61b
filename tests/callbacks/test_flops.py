from keras_bert_impl import BertConfig
from keras_bert_impl.callbacks.flops import matrix_product_ceiling, training_flops


def test_a_training_sequence_takes_what_is_published():
    # BERT-large takes 0.241 TFLOP a sequence of 128 tokens and 1.02 of 512, base 0.070 and 0.301.
    for name, length, predictions, expected in (
        ("bert_base", 128, 20, 0.070),
        ("bert_base", 512, 77, 0.301),
        ("bert_large", 128, 20, 0.241),
        ("bert_large", 512, 77, 1.02),
    ):
        found = training_flops(BertConfig.from_name(name), 1, length, predictions) / 1e12
        assert abs(found / expected - 1) < 0.02, (name, length, found)


def test_flops_by_hand():
    config = BertConfig(11, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=5)
    # Products of query, key, value and output; feed-forward; logits and mixing; the heads.
    by_hand = 5 * (4 * 36 + 2 * 42) + 2 * 25 * 6 + 3 * (36 + 66) + 36
    assert training_flops(config, 2, 5, 3) == 3 * 2 * 2 * by_hand


def test_the_ceiling_is_a_positive_rate():
    assert matrix_product_ceiling(size=64, repeats=2) > 1e6
