"""A SavedModel takes strings and answers as the model does; and it is written whole, or the old one stays."""

import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import WORDS, revealing_config
from hostile_texts import HOSTILE_TEXTS, revealing_vocabulary
from made_exports import answers, make, with_large_weights
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.batching import LengthBatches, predict_rows
from keras_bert_impl.export import export_saved_model, handover, open_export, text_signatures
from keras_bert_impl.text.tokenizers.rows import rows_from_texts
from keras_bert_training.tasks import conll, named_entities

pytestmark = on("tensorflow")

ROOT = pathlib.Path(__file__).parents[2]
NAMES = ["news", "café", "prose"]
TEXTS = ["the cat sat on a mat .", "dogs", "", "the [SEP] is [MASK]", "red , blue " * 7]
PAIRS = ["a dog", "", "it ran in rain , the cat sat on a mat", "good", "bad " * 9]


@pytest.fixture(scope="module")
def tokenizer():
    return kbi.WordPieceTokenizer(WORDS)


@pytest.fixture(scope="module")
def classifier():
    return make("TextClassifier", class_names=NAMES)


@pytest.fixture(scope="module")
def masked_lm():
    return make("MaskedLM")


def served(model, directory):
    """The signatures of a SavedModel that is written and loaded."""
    export_saved_model(model, directory)
    return tf.saved_model.load(str(directory)).signatures


@pytest.fixture(scope="module")
def classifier_directory(tmp_path_factory):
    return tmp_path_factory.mktemp("export") / "classifier"


@pytest.fixture(scope="module")
def of_classifier(classifier, classifier_directory):
    return served(classifier, classifier_directory)


@pytest.fixture(scope="module")
def of_masked_lm(masked_lm, tmp_path_factory):
    return served(masked_lm, tmp_path_factory.mktemp("export") / "masked_lm")


def test_attention_is_that_of_an_encoder_that_returns_it(classifier, of_classifier, tokenizer):
    found = answers(of_classifier["attention"], text=["the cat sat", "a dog [MASK]"])
    assert found["tokens"][0].tolist() == [b"[CLS]", b"the", b"cat", b"sat", b"[SEP]", b"", b""]
    returning = kbi.BertEncoder(classifier.encoder.config, return_attention=True)
    returning.set_weights(classifier.encoder.get_weights())
    rows = rows_from_texts(tokenizer, ["the cat sat", "a dog [MASK]"], sequence_length=9, pad_to=7)
    expected = keras.ops.convert_to_numpy(returning(rows)["attention_probabilities"])
    np.testing.assert_allclose(found["attention"][0, :, :, :5], expected[0, :, :, :5], atol=1e-5)
    assert not found["attention"][0, :, :, 5:].any()  # what padding attends to


def test_a_mask_is_one_token_to_the_attention_of_a_masked_lm(of_masked_lm):
    found = answers(of_masked_lm["attention"], text=["the [MASK] sat"])
    assert found["tokens"][0].tolist() == [b"[CLS]", b"the", b"[MASK]", b"sat", b"[SEP]"]


def test_classifier_gives_the_models_logits_and_names_the_likeliest_class(classifier, of_classifier):
    found, expected = answers(of_classifier["serving_default"], text=TEXTS), classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(found["logits"], expected, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"], keras.ops.softmax(expected), atol=1e-5)
    assert found["class_id"].tolist() == expected.argmax(1).tolist()
    assert [label.decode() for label in found["label"]] == [NAMES[place] for place in expected.argmax(1)]
    of_pairs = answers(of_classifier["pairs"], text=TEXTS, text_pair=PAIRS)["logits"]
    np.testing.assert_allclose(of_pairs, classifier.predict((TEXTS, PAIRS), verbose=0), atol=1e-5)


def test_several_classes_are_named_with_a_sigmoid_each(ask):
    model = make("TextClassifier", class_names=NAMES, multi_label=True)
    bias = model.get_layer("classifier").bias
    bias.assign(bias - np.median(model.predict(TEXTS, verbose=0), axis=0) + 0.01)
    found = ask(model, text=TEXTS)
    np.testing.assert_allclose(found["probabilities"], keras.ops.sigmoid(model.predict(TEXTS, verbose=0)), atol=1e-5)
    expected = [[name for name, share in labels if share > 0.5] for labels in model.classify(TEXTS, top_k=None)]
    assert [[name.decode() for name in row if name] for row in found["labels"]] == expected
    assert len({len(labels) for labels in expected}) > 1 and set(found) == {"logits", "probabilities", "labels"}


def test_every_weight_is_stored_once(classifier, of_classifier, classifier_directory):
    stored = tf.train.list_variables(str(classifier_directory / "variables" / "variables"))
    assert sum(np.prod(shape) for _, shape in stored if shape) == classifier.count_params()


def test_a_saved_model_is_opened_for_texts_after_tensorflow_has_computed(
    classifier, of_classifier, classifier_directory
):
    found = open_export(classifier_directory)(TEXTS)["logits"]
    np.testing.assert_allclose(found, classifier.predict(TEXTS, verbose=0), atol=1e-4)


def test_pairs_of_unequal_number_are_refused(of_classifier):
    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        answers(of_classifier["pairs"], text=["a", "dog"], text_pair=["cat"])


def test_no_text_gives_no_rows(of_classifier, of_masked_lm):
    assert answers(of_classifier["serving_default"], text=[])["logits"].shape == (0, 3)
    assert answers(of_classifier["pairs"], text=[], text_pair=[])["label"].shape == (0,)
    assert answers(of_masked_lm["serving_default"], text=[])["tokens"].shape == (0, 0, 5)


def test_masks_get_the_models_guesses_and_rows_with_fewer_are_padded(masked_lm, of_masked_lm):
    texts = ["the [MASK] sat on a [MASK] .", "no mask [mask]", "[MASK]"]
    found = answers(of_masked_lm["serving_default"], text=texts)
    assert found["tokens"].shape == (3, 2, 5)
    for row, text in ((0, texts[0]), (2, texts[2])):
        for mask, guesses in enumerate(masked_lm.fill_mask(text)):
            assert [token.decode() for token in found["tokens"][row, mask]] == [guess.token for guess in guesses]
            assert found["token_ids"][row, mask].tolist() == [guess.id for guess in guesses]
            expected = [guess.probability for guess in guesses]
            np.testing.assert_allclose(found["probabilities"][row, mask], expected, atol=1e-5)
    for row, mask in ((1, 0), (1, 1), (2, 1)):
        assert found["tokens"][row, mask].tolist() == [b""] * 5
        assert found["probabilities"][row, mask].tolist() == found["token_ids"][row, mask].tolist() == [0] * 5


def test_texts_without_any_mask_give_no_guesses(of_masked_lm):
    # The seventeenth word is beyond the model's 11 tokens and is cut off.
    assert answers(of_masked_lm["serving_default"], text=["the cat", "a dog " * 8 + "[MASK]"])["tokens"].shape == (
        2,
        0,
        5,
    )


def test_hostile_texts_give_the_ids_of_training(ask):
    tokenizer = kbi.WordPieceTokenizer(revealing_vocabulary(HOSTILE_TEXTS, True))
    encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=71))
    invalid = [b"a\xffb", b"\xe2\x82A", b"\xed\xa0\x80z", b"\x80"]
    found = ask(encoder, tokenizer=tokenizer, text=[*HOSTILE_TEXTS, *invalid])
    texts = [*HOSTILE_TEXTS, *(text.decode(errors="ignore") for text in invalid)]
    expected = rows_from_texts(tokenizer, texts, sequence_length=71, pad_to=71)
    np.testing.assert_array_equal(found["token_ids"], expected["token_ids"])
    np.testing.assert_array_equal(found["padding_mask"], expected["padding_mask"])


def test_encoder_gives_its_vectors_and_their_mean_over_tokens(ask, tokenizer):
    encoder, texts = make("BertEncoder"), ["the cat sat", "", "a"]
    found = ask(encoder, tokenizer=tokenizer, text=texts)
    rows = rows_from_texts(tokenizer, texts, pad_to=5)  # [CLS] the cat sat [SEP]
    expected = encoder.predict(rows, verbose=0)
    np.testing.assert_allclose(found["sequence_output"], expected["sequence_output"], atol=1e-5)
    np.testing.assert_allclose(found["pooled_output"], expected["pooled_output"], atol=1e-5)
    means = [expected["sequence_output"][row, :tokens].mean(0) for row, tokens in enumerate((5, 2, 3))]
    np.testing.assert_allclose(found["mean_pooled"], means, atol=1e-5)


@pytest.mark.full
def test_mixed_bfloat16_answers_in_float32(ask, tokenizer):
    config = revealing_config(tokenizer, max_length=11)
    encoder = with_large_weights(kbi.BertEncoder(config, dtype="mixed_bfloat16"))
    found = ask(encoder, tokenizer=tokenizer, text=TEXTS)
    expected = encoder.predict(rows_from_texts(tokenizer, TEXTS, sequence_length=11, pad_to=11), verbose=0)
    for name in ("sequence_output", "pooled_output"):
        assert found[name].dtype == "float32"
        np.testing.assert_array_equal(found[name], expected[name].astype("float32"))
    assert found["mean_pooled"].dtype == "float32"


ENDINGS = [["a dog", "the cat sat on a mat", ""], ["it ran", "rain", "red red"]]
# For each kind: the output that is the model's, and what it is asked besides texts.
OF_THE_MODEL = {
    "TextRegressor": ("value", {}),
    "TextRegressor of pairs": ("value", {"text_pair": PAIRS}),
    "NextSentencePredictor": ("logits", {"text_pair": PAIRS}),
    "TextEmbedder": ("vector", {}),
    "MultipleChoice": ("logits", {"text": TEXTS[:2], "endings": ENDINGS}),
}


@pytest.mark.parametrize("kind", full_but(OF_THE_MODEL, *[*OF_THE_MODEL][1:]))
def test_numbers_are_those_of_the_model(kind, ask):
    output, inputs = OF_THE_MODEL[kind]
    model, inputs = make(kind.split()[0]), {"text": TEXTS, **inputs}
    found = ask(model, "pairs" if kind.endswith("pairs") else "serving_default", **inputs)
    given = tuple(inputs.values()) if len(inputs) > 1 else TEXTS
    expected = model.predict(given, verbose=0)
    np.testing.assert_allclose(found[output].reshape(expected.shape), expected, atol=1e-5)
    assert "class_id" not in found or found["class_id"].tolist() == expected.argmax(1).tolist()


@pytest.mark.full
def test_words_get_the_labels_of_the_task(ask, tokenizer):
    names = ["O", "B-cat", "I-cat"]
    model = make("TokenClassifier", class_names=names)
    texts = ["the cats sat \u200d on mat.", "", "dogs, cats, dogs, cats, dogs, cats", "red", "cats sat on mat"]
    found = ask(model, text=texts)
    task = named_entities.TASKS["ner"]
    sentences = [conll.Sentence(text.split(), ["O"] * len(text.split()), 0) for text in texts]
    rows = task.featurize(tokenizer, named_entities.LabelledSentences(sentences), names, 11)
    outputs = predict_rows(model, LengthBatches(tokenizer, rows, 3, 11, shuffle=False))
    expected = named_entities.word_labels(named_entities.LabelledSentences(sentences), rows, outputs, names)
    for row, labels in enumerate(expected):
        given = [label.decode() for label in found["labels"][row] if label]
        assert [word.decode() for word in found["words"][row] if word] == texts[row].split()
        assert len(given) == len(texts[row].split())
        if (rows.source.words[row] >= 0).sum() == len(given):  # others the task cuts, where the export has windows
            assert given == labels


TRAIN_ELSEWHERE = """
import sys
import keras, numpy as np
from made_exports import make
from keras_bert_impl.export import export_saved_model

classifier = make("TextClassifier")
# A loss of the user's own, which another process does not know.
classifier.compile("adam", lambda y_true, y_pred: keras.ops.mean(y_pred))
export_saved_model(classifier, sys.argv[1])
assert "keras_bert_impl.export.text_signatures" not in sys.modules  # it needs TensorFlow
np.save(sys.argv[1] + "/expected.npy", classifier.predict(sys.argv[2].split("|"), verbose=0))
"""


@pytest.mark.full
def test_model_of_another_backend_is_served_with_its_own_outputs(tmp_path):
    if importlib.util.find_spec("torch") is None:  # to import it here would take seconds
        pytest.skip("torch is not installed")
    environment = {**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = [sys.executable, "-c", TRAIN_ELSEWHERE, tmp_path / "served", "|".join(TEXTS)]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    found = answers(tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"], text=TEXTS)
    np.testing.assert_allclose(found["logits"], np.load(tmp_path / "served" / "expected.npy"), atol=1e-5)
    assert set(found["label"].tolist()) <= {b"0", b"1", b"2"}


class Renamed(kbi.TextClassifier):
    """A user-defined class that trains differently but computes the same as its parent."""

    def fit(self, *arguments, **named):
        return super().fit(*arguments, **named)


OWN_MODULE = """
import keras
import keras_bert_impl as kbi


class Doubled(kbi.TextClassifier):
    def call(self, inputs, training=None, mask=None):
        return 2 * super().call(inputs, training=training, mask=mask)
"""


@pytest.fixture
def encoder(tokenizer):
    return kbi.BertEncoder(revealing_config(tokenizer, max_length=11))


@pytest.fixture
def doubled(tmp_path, monkeypatch):
    """A user-defined class, in a module next to the script, that computes something else than its parent."""
    (tmp_path / "own_module.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("own_module").Doubled


@pytest.mark.full
def test_a_class_of_the_user_s_own_is_served_with_its_own_outputs(doubled, encoder, tokenizer, tmp_path, monkeypatch):
    model = with_large_weights(doubled(encoder, 3, tokenizer, sequence_length=9))
    expected = model.predict(TEXTS, verbose=0)
    with monkeypatch.context() as patch:
        patch.setattr(keras.backend, "backend", lambda: "jax")  # so that another process writes it
        export_saved_model(model, tmp_path / "served")
    found = answers(tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"], text=TEXTS)
    np.testing.assert_allclose(found["logits"], expected, atol=1e-5)


def test_another_process_is_given_the_class_that_computes(doubled, encoder):
    assert handover.class_for_another_process(Renamed(encoder, 3)) is kbi.TextClassifier
    assert handover.class_for_another_process(doubled(encoder, 3)) is doubled

    class Hidden(doubled):
        pass

    with pytest.raises(ValueError, match="Hidden changes what its parent"):
        handover.class_for_another_process(Hidden(encoder, 3))


@pytest.mark.full
def test_a_quantized_model_is_served_with_its_own_outputs(ask):
    model = make("TextClassifier")
    model.quantize("int8")
    found = ask(model, text=TEXTS)["logits"]
    np.testing.assert_allclose(found, model.predict(TEXTS, verbose=0), atol=1e-5)


def writer_of(name):
    """Stands in for the slow writing of graphs: writes, breaks off, or does nothing."""

    def write(model, tokenizer, sequence_length, target):
        if name == "nothing":
            return
        (target / "assets.extra").mkdir(parents=True)
        if name == "half":
            raise OSError("No space left on device")
        (target / "saved_model.pb").write_text(f"length {sequence_length}")

    return write


def test_existing_directory_is_refused_and_left_as_it_is(classifier, tmp_path, monkeypatch):
    monkeypatch.setattr(text_signatures, "write", writer_of("all"))
    directory = tmp_path / "served"
    export_saved_model(classifier, directory)
    with pytest.raises(ValueError, match="overwrite=True"):
        export_saved_model(classifier, directory, sequence_length=5)
    assert (directory / "saved_model.pb").read_text() == "length 11"
    export_saved_model(classifier, directory, sequence_length=5, overwrite=True)
    assert (directory / "saved_model.pb").read_text() == "length 5"
    assert list(tmp_path.iterdir()) == [directory]
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"if it holds saved_model\.pb"):
        export_saved_model(classifier, tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(("written", "error"), [("half", OSError), ("nothing", FileNotFoundError)])
def test_interrupted_writing_leaves_the_old_directory(written, error, classifier, tmp_path, monkeypatch):
    directory = tmp_path / "served"
    directory.mkdir()
    (directory / "saved_model.pb").write_text("old")
    monkeypatch.setattr(text_signatures, "write", writer_of(written))
    with pytest.raises(error):
        export_saved_model(classifier, directory, overwrite=True)
    assert (directory / "saved_model.pb").read_text() == "old"
    assert list(tmp_path.iterdir()) == [directory]


def test_model_without_tokenizer_or_of_another_kind_is_refused(encoder, tokenizer, tmp_path):
    with pytest.raises(ValueError, match="pass tokenizer="):
        export_saved_model(encoder, tmp_path / "served")
    with pytest.raises(ValueError, match="not of a Pretrainer"):
        export_saved_model(kbi.Pretrainer(encoder), tmp_path / "served", tokenizer)
    with pytest.raises(ValueError, match="sequence_length 12"):
        export_saved_model(encoder, tmp_path / "served", tokenizer, sequence_length=12)
    assert list(tmp_path.iterdir()) == []
