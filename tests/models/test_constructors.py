"""Arguments of constructors and of `from_pretrained`; the encoder's are passed on."""

import keras
import numpy as np
import pytest

import keras_bert_impl as kbi
from keras_bert_impl.encoders import weight_shapes


def test_a_checkpoint_is_opened_with_an_argument_of_a_subclass(directory):
    class Mine(kbi.TextClassifier):
        def __init__(self, *arguments, mine=1, **options):
            super().__init__(*arguments, **options)
            self.mine = mine

    class Other(Mine):
        def __init__(self, encoder, num_classes, other, **options):
            super().__init__(encoder, num_classes, **options)
            self.other = other

    assert Mine.from_pretrained(directory, mine=3).mine == 3
    model = Other.from_pretrained(directory, other=5, mine=3, class_names=["bad", "so", "good"])
    assert (model.mine, model.other, model.class_names) == (3, 5, ["bad", "so", "good"])


@pytest.fixture
def directory(small_config, tmp_path):
    kbi.TextClassifier(kbi.BertEncoder(small_config), 3).save_pretrained(tmp_path)
    return tmp_path


def test_from_pretrained_passes_rematerialize_to_the_encoder(directory):
    model = kbi.TextClassifier.from_pretrained(directory, rematerialize=True)
    assert model.encoder.rematerialize and model.encoder.get_layer("block_1").rematerialize
    assert not kbi.TextClassifier.from_pretrained(directory).encoder.rematerialize


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


def test_sizes_may_be_integers_of_numpy(tmp_path):
    sizes = {"hidden_size": np.int64(8), "num_layers": np.int64(1), "num_heads": np.int32(2)}
    encoder = kbi.BertEncoder(kbi.BertConfig(np.int64(20), intermediate_size=np.int64(8), **sizes))
    model = kbi.TextClassifier(encoder, np.int64(3), sequence_length=np.int64(16), dropout_rate=np.float32(0.5))
    model.save_pretrained(tmp_path)
    model.save(tmp_path / "model.keras")
    loaded = kbi.TextClassifier.from_pretrained(tmp_path)
    assert (loaded.num_classes, loaded.encoder.config) == (3, encoder.config)


@pytest.mark.filterwarnings("ignore:.* has no values for classifier")
def test_the_first_model_that_is_opened_gets_the_head_of_all_later_ones(directory):
    def head():
        keras.utils.set_random_seed(5)
        model = kbi.TextClassifier.from_pretrained(directory, num_classes=2)
        return keras.ops.convert_to_numpy(model.get_layer("classifier").kernel)

    weight_shapes.cache_clear()
    np.testing.assert_array_equal(head(), head())
