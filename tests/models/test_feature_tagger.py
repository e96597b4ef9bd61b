import keras
import numpy as np
import pytest

import keras_bert_impl as kbi
from keras_bert_impl.models.feature_tagger import FEATURES


def make_encoder():
    sizes = {"hidden_size": 6, "num_layers": 5, "num_heads": 2, "intermediate_size": 7, "max_length": 11}
    rates = {"hidden_dropout_rate": 0.5, "attention_dropout_rate": 0.5}
    return kbi.BertEncoder(kbi.BertConfig(29, **sizes, **rates), return_hidden_states=True)


def make_rows(batch=3, length=7):
    ids = np.random.default_rng(0).integers(5, 29, (batch, length)).astype("int32")
    mask = np.ones_like(ids)
    mask[1, 4:] = 0
    return {"token_ids": ids * mask, "segment_ids": 0 * ids, "padding_mask": mask}


def features_of(tagger, rows):
    return keras.Model(tagger.input, tagger.get_layer("bilstm_0").input[0]).predict_on_batch(rows)


def test_features_are_the_layers_of_the_papers_table():
    encoder, rows = make_encoder(), make_rows()
    states = encoder.predict_on_batch(rows)["hidden_states"]  # (batch, layers + 1, length, width)
    expected = {
        "embeddings": states[:, 0],
        "second_to_last": states[:, -2],
        "last": states[:, -1],
        "weighted_sum_last_four": states[:, -4:].mean(1),
        "concat_last_four": np.concatenate([states[:, layer] for layer in (-4, -3, -2, -1)], axis=-1),
        "weighted_sum_all": states[:, 1:].mean(1),
    }
    assert expected.keys() == FEATURES.keys()
    real = rows["padding_mask"] == 1
    for name, array in expected.items():
        found = features_of(kbi.FeatureTagger(make_like(encoder), 3, name, units=5), rows)
        np.testing.assert_allclose(found[real], array[real], atol=1e-5, err_msg=name)


def outputs_of(tagger, training):
    return keras.ops.convert_to_numpy(tagger(make_rows(), training=training))


def make_like(encoder):
    other = make_encoder()
    other.set_weights(encoder.get_weights())
    return other


def test_only_what_stands_over_the_encoder_learns_and_nothing_is_dropped():
    tagger = kbi.FeatureTagger(make_encoder(), 3, "weighted_sum_all", units=5)
    names = {weight.path.split("/")[0] for weight in tagger.trainable_weights}
    assert names == {"layer_weights", "bilstm_0", "bilstm_1", "tagger"}
    one, other = (outputs_of(tagger, training=True) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_padding_does_not_change_the_other_outputs():
    tagger = kbi.FeatureTagger(make_encoder(), 3, units=5)
    rows = make_rows()
    short = {name: array[1:2, :4] for name, array in rows.items()}
    np.testing.assert_allclose(tagger.predict_on_batch(rows)[1:2, :4], tagger.predict_on_batch(short), atol=1e-5)


def test_saved_and_loaded_it_gives_the_same(tmp_path):
    tagger = kbi.FeatureTagger(make_encoder(), 3, units=5, class_names=["O", "B", "I"])
    tagger.save_pretrained(tmp_path)
    again = kbi.FeatureTagger.from_pretrained(tmp_path)
    assert again.class_names == ["O", "B", "I"]
    np.testing.assert_allclose(again.predict_on_batch(make_rows()), tagger.predict_on_batch(make_rows()), atol=1e-6)


def test_a_fit_without_compile_is_refused_by_keras():
    tagger = kbi.FeatureTagger(make_encoder(), 3, units=5)
    with pytest.raises(ValueError, match="must call `compile"):
        tagger.fit(make_rows(), np.zeros((3, 7), "int32"))
