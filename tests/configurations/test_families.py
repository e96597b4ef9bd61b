"""Configurations of all families: the published sizes, and what transformers would compute otherwise."""

import json
import re

import pytest
from families import CONFIGS
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.encoders import config_from_name, count_parameters

# Weights of an encoder, by hand from the shapes in the papers, or as millions where only these are published.
PARAMETERS = {
    "bert_base": 109_482_240,
    "bert_large": 335_141_888,
    "distilbert_base": 66_362_880,
    "roberta_base": 124_645_632,
    "roberta_large": 355_359_744,
    "distilroberta_base": 82_118_400,
    "xlm_roberta_base": 278_043_648,
    "xlm_roberta_large": 559_890_432,
    "albert_base_v1": 11_683_584,
    "albert_base_v2": 11_683_584,
    "albert_large_v2": 17_683_968,
    "albert_xlarge_v2": 58_724_864,
    "albert_xxlarge_v1": 222_595_584,
    "electra_small": 13_483_008,
    "electra_base": 108_891_648,
    "electra_large": 334_092_288,
    "electra_base_generator": 33_511_168,
    "ernie_base": 99_866_112,
    "mpnet_base": 109_486_464,
    "xlnet_base": 116_718_336,
    "xlnet_large": 360_268_800,
    "longformer_base": 148_659_456,
    "bigbird_base": 127_468_800,
    "deberta_v3_base": 183_831_552,
    "deberta_v3_xsmall": 70.7,
    "deberta_v3_small": 141.3,
    "deberta_v3_large": 434.0,
    "deberta_base": 138.6,
    "deberta_large": 405.2,
    "deberta_xlarge": 757.8,
    "mdeberta_v3_base": 278.2,
    "deberta_v2_xlarge": 884.6,
    "deberta_v2_xxlarge": 1564.5,
    "modernbert_base": 149.0,
    "eurobert_210m": 211_766_016,
    "nomic_bert_base": 136_731_648,
    "gte_multilingual_base": 305_368_320,
    "gte_large_en": 434.1,
    "eurobert_610m": 607.9,
    "modernbert_large": 394.8,
}


QUICK = ("bert_base", "distilbert_base", "roberta_base", "albert_base_v2", "electra_small", "ernie_base", "mpnet_base")
QUICK += ("xlnet_base", "longformer_base", "bigbird_base", "deberta_v3_xsmall", "deberta_base")


@pytest.mark.parametrize("name", full_but(PARAMETERS, *QUICK))
def test_a_published_size_has_the_published_parameters(name):
    found, expected = count_parameters(config_from_name(name)), PARAMETERS[name]
    assert found == expected if isinstance(expected, int) else abs(found / 1e6 - expected) < 0.1


def test_large_sizes_have_the_published_shapes():
    for name in ("longformer_large", "bigbird_large"):
        config = config_from_name(name)
        assert (config.num_layers, config.hidden_size, config.num_heads) == (24, 1024, 16)
    assert config_from_name("longformer_large").windows == [256] * 24
    for name in ("roberta_base", "distilroberta_base", "xlm_roberta_large"):
        config = config_from_name(name)
        assert (config.max_length, config.num_positions, config.layer_norm_epsilon) == (512, 514, 1e-5)


REFUSED = [
    ("Bert", {"model_type": "roberta"}, "model_type 'roberta' is not supported; expected 'bert'"),
    ("DistilBert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds True is not supported"),
    ("BigBird", {"is_decoder": True}, "is_decoder"),
    ("DebertaV2", {"relative_attention": False}, "relative_attention False is not supported"),
    ("DebertaV2", {"conv_kernel_size": 3}, "conv_act 'tanh' is not supported"),
    ("DebertaV2", {"pos_att_type": "c2p"}, "pos_att_type ['c2p'] is not supported"),
    ("DebertaV2", {"embedding_size": 9}, "embedding_size 9 is not supported"),
    ("DebertaV2", {"max_relative_positions": 4}, "above 5 and convolution 0 or odd, not 8, 4 and 0"),
    ("DebertaV2", {"position_buckets": 7}, "odd, not 7, "),
    ("DebertaV2", {"conv_kernel_size": 4, "conv_act": "gelu"}, " and 4."),
    ("DebertaV2", {"hidden_act": "relu"}, "activation 'relu'"),
    ("MPNet", {"relative_attention_num_buckets": 64}, "relative_attention_num_buckets 64 is not supported"),
    ("MPNet", {"pad_token_id": 0}, "pad_id of an MPNet must be 1, not 0"),
    ("ModernBert", {"layer_types": ["sliding_attention", "full_attention"]}, "layer_types"),
    ("ModernBert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type 'yarn'"),
    ("ModernBert", {"embedding_dropout": 0.1}, "embedding_dropout and mlp_dropout differ"),
    ("ModernBert", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling"),
    ("ModernBert", {"classifier_pooling": "max"}, "classifier_pooling 'max'"),
    ("XLNet", {"attn_type": "uni"}, "attn_type 'uni' is not supported"),
    ("XLNet", {"d_head": 3}, "d_head 3 is not supported"),
]


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_what_transformers_would_compute_otherwise_is_refused(name, changes, message, tmp_path):
    config, path = CONFIGS[name], tmp_path / "config.json"
    path.write_text(json.dumps({**config.to_huggingface(), **changes}))
    with pytest.raises(ValueError, match=re.escape(message)):
        type(config).from_huggingface(path)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Longformer", {"attention_window": 5}),
        ("Longformer", {"global_tokens": "all"}),
        ("BigBird", {"attention_type": "sparse"}),
        ("BigBird", {"random_blocks": "none"}),
    ],
)
def test_a_configuration_that_a_family_does_not_have_is_refused(name, fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        type(CONFIGS[name])(**{**CONFIGS[name].to_dict(), **fields})


def test_the_versions_of_albert_differ_in_activation_and_dropout():
    def of(name):
        config = kbi.AlbertConfig.from_name(name)
        return config.activation, config.hidden_dropout_rate, config.attention_dropout_rate

    assert of("albert_base_v1") == of("albert_xlarge_v1") == ("gelu", 0.1, 0.1)
    assert of("albert_xxlarge_v1") == ("gelu", 0.0, 0.0)
    assert of("albert_base_v2") == of("albert_base") == of("albert_xxlarge_v2") == ("gelu_tanh", 0.0, 0.0)
    assert kbi.AlbertConfig.from_name("albert_base_v1", hidden_dropout_rate=0.3).hidden_dropout_rate == 0.3


def test_the_paper_s_generators_of_electra_come_from_their_shares():
    shapes = {
        size: kbi.ElectraConfig.from_name(f"electra_{size}").generator(share)
        for size, share in (("small", 1 / 4), ("base", 1 / 3), ("large", 1 / 4))
    }
    found = {size: (one.hidden_size, one.num_heads, one.intermediate_size) for size, one in shapes.items()}
    assert found == {"small": (64, 1, 256), "base": (256, 4, 1024), "large": (256, 4, 1024)}
