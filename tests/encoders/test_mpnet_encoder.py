"""What only MPNet does: relative positions in buckets, and BERT's pieces in RoBERTa's rows."""

import keras
import numpy as np
import pytest
from families import CONFIGS
from reference_models import open_in_transformers, outputs_of, random_model
from tiers import once

import keras_bert_impl as kbi
from keras_bert_impl.encoders.mpnet import RelativePositionBias
from keras_bert_impl.text.tokenizers import open_tokenizer

# As the published vocabulary: RoBERTa's names first, then BERT's with its own control tokens, then the mask.
WORDS = [
    *"<s> <pad> </s> <unk> [PAD] [UNK] [CLS] [SEP] [MASK] the cap ##ital of is paris . < > s / mask caf ##e".split(),
    "<mask>",
]
TEXTS = ["The capital of Paris.", "Café is </s> unknown, <mask>.", ""]


@pytest.fixture
def tokenizer():
    return kbi.MPNetTokenizer(WORDS)


def test_every_distance_is_in_the_bucket_of_transformers():
    torch, mpnet = pytest.importorskip("torch"), pytest.importorskip("transformers.models.mpnet.modeling_mpnet")
    distances = np.arange(-300, 301)  # of a key from its query
    expected = mpnet.MPNetEncoder.relative_position_bucket(torch.tensor(distances)).numpy()
    bias = RelativePositionBias(1, initializer=lambda shape, dtype: keras.ops.reshape(keras.ops.arange(32.0), (32, 1)))
    found = keras.ops.convert_to_numpy(bias(np.zeros((1, 301), "int32")))[0, 0]
    np.testing.assert_array_equal(np.concatenate([found[-1], found[0, 1:]]), expected)


def test_a_long_row_is_computed_as_by_transformers(tmp_path):
    config = kbi.MPNetConfig(**{**CONFIGS["MPNet"].to_dict(), "max_length": 300})
    rows = {
        "token_ids": np.random.default_rng(0).integers(5, 53, (2, 290)).astype("int32"),
        "segment_ids": np.zeros((2, 290), "int32"),
        "padding_mask": (np.arange(290) < [[290], [170]]).astype("int32"),
    }
    rows["token_ids"] = np.where(rows["padding_mask"] == 1, rows["token_ids"], 1).astype("int32")
    theirs = outputs_of(random_model("MPNetModel", config, tmp_path), rows)["last_hidden_state"]
    ours = kbi.MPNetEncoder.from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    seen = rows["padding_mask"] == 1
    np.testing.assert_allclose(ours[seen], theirs[seen], atol=1e-5)


@once
@pytest.mark.parametrize("lowercase", [True, False])
def test_texts_and_pairs_have_the_ids_of_transformers(lowercase, tmp_path):
    transformers = pytest.importorskip("transformers")
    ours = kbi.MPNetTokenizer(WORDS, lowercase)
    theirs = transformers.MPNetTokenizer({word: index for index, word in enumerate(WORDS)}, do_lower_case=lowercase)
    for text in (TEXTS[0], "a café, of paris", ""):
        assert ours.encode(text).ids == theirs(text)["input_ids"]
        assert ours.encode(text, "is cap").ids == theirs(text, "is cap")["input_ids"]
    assert set(ours.encode("the", "of").type_ids) == {0}
    assert ours.encode_with_masks("the <mask> of").ids == theirs("the <mask> of")["input_ids"]
    assert ours.encode_with_masks("the [MASK] of").ids == ours.encode_with_masks("the <mask> of").ids


@once
def test_a_directory_has_the_tokenizer_that_its_padding_shows(tokenizer, tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer.save_pretrained(tmp_path / "ours", 128)
    assert open_tokenizer(tmp_path / "ours") == tokenizer
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert type(theirs).__name__.removesuffix("Fast") == "MPNetTokenizer"
    assert theirs(TEXTS[0], "of")["input_ids"] == tokenizer.encode(TEXTS[0], "of").ids
    theirs.save_pretrained(tmp_path / "theirs")  # with a tokenizer.json
    assert open_tokenizer(tmp_path / "theirs") == tokenizer
    berts = kbi.WordPieceTokenizer([word for word in WORDS if not word.startswith("<")])
    berts.save_pretrained(tmp_path / "bert")
    assert open_tokenizer(tmp_path / "bert") == berts


@pytest.mark.parametrize("task", ["TextClassifier", "MaskedLM"])
def test_texts_go_to_transformers_and_back(task, tokenizer, tmp_path):
    encoder = kbi.MPNetEncoder(CONFIGS["MPNet"])
    arguments = {"num_classes": 3} if task == "TextClassifier" else {}
    model = getattr(kbi, task)(encoder, tokenizer=tokenizer, sequence_length=9, **arguments)
    model.save_pretrained(tmp_path)
    again = getattr(kbi, task).from_pretrained(tmp_path)
    assert again.tokenizer == tokenizer and again.sequence_length == 9
    name = {"TextClassifier": "ForSequenceClassification", "MaskedLM": "ForMaskedLM"}[task]
    open_in_transformers(f"MPNet{name}", tmp_path)
    if task == "MaskedLM":
        assert again.fill_mask("the <mask> of paris") == model.fill_mask("the [MASK] of paris")
    else:
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), model.predict(TEXTS, verbose=0), atol=1e-6)
