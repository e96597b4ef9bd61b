"""Arguments that a model does not know are refused by name; the encoder's are passed on."""

import pytest
from every_model import KINDS, MODELS

import keras_bert_impl as kbi


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_argument_of_a_model_is_refused_by_name(kind, small_config):
    make = kbi.BertEncoder if kind == "BertEncoder" else lambda encoder, **arguments: MODELS[kind](encoder, **arguments)
    start = small_config if kind == "BertEncoder" else kbi.BertEncoder(small_config)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokenizr'"):
        make(start, tokenizr=None)


@pytest.fixture
def directory(small_config, tmp_path):
    kbi.TextClassifier(kbi.BertEncoder(small_config), 3).save_pretrained(tmp_path)
    return tmp_path


def test_from_pretrained_passes_rematerialize_to_the_encoder(directory):
    model = kbi.TextClassifier.from_pretrained(directory, rematerialize=True)
    assert model.encoder.rematerialize and model.encoder.get_layer("block_1").rematerialize
    assert not kbi.TextClassifier.from_pretrained(directory).encoder.rematerialize


@pytest.mark.parametrize("model_class", [kbi.TextClassifier, kbi.TextRegressor, kbi.BertEncoder])
def test_from_pretrained_refuses_what_no_model_takes(model_class, directory):
    with pytest.raises(TypeError, match="unexpected keyword argument 'rematerialise'"):
        model_class.from_pretrained(directory, rematerialise=True)


@pytest.mark.filterwarnings("ignore:.* has no values for classifier")
def test_names_of_classes_give_their_number(directory):
    model = kbi.TokenClassifier.from_pretrained(directory, class_names=["O", "B-A"])
    assert (model.num_classes, model.class_names) == (2, ["O", "B-A"])
    kept = kbi.TextClassifier.from_pretrained(directory, class_names=["bad", "so", "good"])
    assert (kept.num_classes, kept.class_names) == (3, ["bad", "so", "good"])


@pytest.mark.filterwarnings("ignore:.* has no values for masked_lm_head")
def test_a_pretrainer_can_be_loaded_without_next_sentences(directory):
    model = kbi.Pretrainer.from_pretrained(directory, next_sentence=False, rematerialize=True)
    assert not model.next_sentence and model.encoder.rematerialize
    assert not any("next_sentence" in weight.path for weight in model.weights)
