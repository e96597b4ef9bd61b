import importlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import WORDS
from hostile_texts import HOSTILE_TEXTS, revealing_vocabulary
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.batching import LengthBatches, predict_rows
from keras_bert_impl.export import export_saved_model, handover, text_signatures
from keras_bert_impl.text.tokenizers.rows import rows_from_texts
from keras_bert_training.tasks import conll, named_entities

pytestmark = on("tensorflow")

ROOT = pathlib.Path(__file__).parents[2]
TEXTS = ["the cat sat on a mat .", "dogs", "", "the [SEP] is [MASK]", "red , blue " * 7]
PAIRS = ["a dog", "", "it ran in rain , the cat sat on a mat", "good", "bad " * 9]


def make_encoder(tokenizer, max_length=11, dtype=None):
    """An encoder of odd sizes, with weights large enough that every token influences the outputs."""
    config = kbi.BertConfig(
        tokenizer.vocabulary_size,
        hidden_size=15,
        num_layers=2,
        num_heads=3,
        intermediate_size=21,
        max_length=max_length,
    )
    return kbi.BertEncoder(config, dtype=dtype)


def with_large_weights(model):
    random = np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model


def serve(directory, signature="serving_default", **texts):
    function = tf.saved_model.load(str(directory)).signatures[signature]
    return {
        name: array.numpy()
        for name, array in function(**{k: tf.constant(v, tf.string) for k, v in texts.items()}).items()
    }


@pytest.fixture(scope="module")
def tokenizer():
    return kbi.WordPieceTokenizer(WORDS)


@pytest.fixture(scope="module")
def classifier(tokenizer):
    names = ["news", "café", "prose"]
    return with_large_weights(
        kbi.TextClassifier(make_encoder(tokenizer), 3, tokenizer, sequence_length=9, class_names=names)
    )


@pytest.fixture(scope="module")
def classifier_directory(classifier, tmp_path_factory):
    directory = tmp_path_factory.mktemp("export") / "classifier"
    export_saved_model(classifier, directory)
    return directory


@pytest.fixture(scope="module")
def masked_lm(tokenizer):
    return with_large_weights(kbi.MaskedLM(make_encoder(tokenizer), tokenizer))


@pytest.fixture(scope="module")
def masked_lm_directory(masked_lm, tmp_path_factory):
    directory = tmp_path_factory.mktemp("export") / "masked_lm"
    export_saved_model(masked_lm, directory)
    return directory


def test_attention_is_that_of_an_encoder_that_returns_it(classifier, classifier_directory, tokenizer):
    served = serve(classifier_directory, "attention", text=["the cat sat", "a dog [MASK]"])
    assert served["tokens"][0].tolist() == [b"[CLS]", b"the", b"cat", b"sat", b"[SEP]", b"", b""]
    returning = kbi.BertEncoder(classifier.encoder.config, return_attention=True)
    returning.set_weights(classifier.encoder.get_weights())
    rows = rows_from_texts(tokenizer, ["the cat sat", "a dog [MASK]"], sequence_length=9, pad_to=7)
    expected = keras.ops.convert_to_numpy(returning(rows)["attention_probabilities"])
    np.testing.assert_allclose(served["attention"][0, :, :, :5], expected[0, :, :, :5], atol=1e-5)
    assert not served["attention"][0, :, :, 5:].any()  # what padding attends to


def test_a_mask_is_one_token_to_the_attention_of_a_masked_lm(masked_lm_directory):
    served = serve(masked_lm_directory, "attention", text=["the [MASK] sat"])
    assert served["tokens"][0].tolist() == [b"[CLS]", b"the", b"[MASK]", b"sat", b"[SEP]"]


def test_classifier_gives_the_models_logits_and_names_the_likeliest_class(classifier, classifier_directory):
    served, expected = serve(classifier_directory, text=TEXTS), classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(served["logits"], expected, atol=1e-5)
    np.testing.assert_allclose(served["probabilities"], keras.ops.softmax(expected), atol=1e-5)
    assert served["class_id"].tolist() == expected.argmax(1).tolist()
    assert [label.decode() for label in served["label"]] == [classifier.class_names[i] for i in expected.argmax(1)]


def test_several_classes_are_named_with_a_sigmoid_each(tokenizer, tmp_path):
    names = ["news", "café", "prose"]
    model = with_large_weights(
        kbi.TextClassifier(make_encoder(tokenizer), 3, tokenizer, 9, class_names=names, multi_label=True)
    )
    bias = model.get_layer("classifier").bias
    bias.assign(bias - np.median(model.predict(TEXTS, verbose=0), axis=0) + 0.01)
    export_saved_model(model, tmp_path / "served")
    served = serve(tmp_path / "served", text=TEXTS)
    np.testing.assert_allclose(served["probabilities"], keras.ops.sigmoid(model.predict(TEXTS, verbose=0)), atol=1e-5)
    expected = [[name for name, share in labels if share > 0.5] for labels in model.classify(TEXTS, top_k=None)]
    assert [[name.decode() for name in row if name] for row in served["labels"]] == expected
    assert len({len(labels) for labels in expected}) > 1 and set(served) == {"logits", "probabilities", "labels"}


def test_every_weight_is_stored_once(classifier, classifier_directory):
    stored = tf.train.list_variables(str(classifier_directory / "variables" / "variables"))
    assert sum(np.prod(shape) for _, shape in stored if shape) == classifier.count_params()


def test_pairs_of_unequal_number_are_refused(classifier_directory):
    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        serve(classifier_directory, "pairs", text=["a", "dog"], text_pair=["cat"])


def test_no_text_gives_no_rows(classifier_directory, masked_lm_directory):
    assert serve(classifier_directory, text=[])["logits"].shape == (0, 3)
    assert serve(classifier_directory, "pairs", text=[], text_pair=[])["label"].shape == (0,)
    assert serve(masked_lm_directory, text=[])["tokens"].shape == (0, 0, 5)


def test_masks_get_the_models_guesses(masked_lm, masked_lm_directory):
    texts = ["the [MASK] sat on a [MASK] .", "no mask [mask]", "[MASK]"]
    served = serve(masked_lm_directory, text=texts)
    for row, text in ((0, texts[0]), (2, texts[2])):
        for mask, guesses in enumerate(masked_lm.fill_mask(text)):
            assert [token.decode() for token in served["tokens"][row, mask]] == [guess.token for guess in guesses]
            assert served["token_ids"][row, mask].tolist() == [guess.id for guess in guesses]
            expected = [guess.probability for guess in guesses]
            np.testing.assert_allclose(served["probabilities"][row, mask], expected, atol=1e-5)


def test_rows_with_fewer_masks_are_padded(masked_lm_directory):
    served = serve(masked_lm_directory, text=["the [MASK] [MASK]", "the", "[MASK]"])
    assert served["tokens"].shape == (3, 2, 5)
    for row, mask in ((1, 0), (1, 1), (2, 1)):
        assert served["tokens"][row, mask].tolist() == [b""] * 5
        assert served["probabilities"][row, mask].tolist() == [0] * 5
        assert served["token_ids"][row, mask].tolist() == [0] * 5


def test_texts_without_any_mask_give_no_guesses(masked_lm_directory):
    # The seventeenth word is beyond the model's 11 tokens and is cut off.
    assert serve(masked_lm_directory, text=["the cat", "a dog " * 8 + "[MASK]"])["tokens"].shape == (2, 0, 5)


def test_hostile_texts_give_the_ids_of_training(tmp_path):
    tokenizer = kbi.WordPieceTokenizer(revealing_vocabulary(HOSTILE_TEXTS, True))
    encoder = make_encoder(tokenizer, max_length=71)
    export_saved_model(encoder, tmp_path / "encoder", tokenizer)
    invalid = [b"a\xffb", b"\xe2\x82A", b"\xed\xa0\x80z", b"\x80"]
    served = serve(tmp_path / "encoder", text=[*HOSTILE_TEXTS, *invalid])
    texts = [*HOSTILE_TEXTS, *(text.decode(errors="ignore") for text in invalid)]
    expected = rows_from_texts(tokenizer, texts, sequence_length=71, pad_to=71)
    np.testing.assert_array_equal(served["token_ids"], expected["token_ids"])
    np.testing.assert_array_equal(served["padding_mask"], expected["padding_mask"])


def test_encoder_gives_its_vectors_and_their_mean_over_tokens(tokenizer, tmp_path):
    encoder = with_large_weights(make_encoder(tokenizer))
    export_saved_model(encoder, tmp_path / "encoder", tokenizer)
    texts = ["the cat sat", "", "a"]
    served = serve(tmp_path / "encoder", text=texts)
    rows = rows_from_texts(tokenizer, texts, pad_to=5)  # [CLS] the cat sat [SEP]
    expected = encoder.predict(rows, verbose=0)
    np.testing.assert_allclose(served["sequence_output"], expected["sequence_output"], atol=1e-5)
    np.testing.assert_allclose(served["pooled_output"], expected["pooled_output"], atol=1e-5)
    means = [expected["sequence_output"][row, :tokens].mean(0) for row, tokens in enumerate((5, 2, 3))]
    np.testing.assert_allclose(served["mean_pooled"], means, atol=1e-5)


def test_mixed_bfloat16_answers_in_float32(tokenizer, tmp_path):
    encoder = with_large_weights(make_encoder(tokenizer, dtype="mixed_bfloat16"))
    export_saved_model(encoder, tmp_path / "encoder", tokenizer)
    served = serve(tmp_path / "encoder", text=TEXTS)
    expected = encoder.predict(rows_from_texts(tokenizer, TEXTS, sequence_length=11, pad_to=11), verbose=0)
    for name in ("sequence_output", "pooled_output"):
        assert served[name].dtype == "float32"
        np.testing.assert_array_equal(served[name], expected[name].astype("float32"))
    assert served["mean_pooled"].dtype == "float32"


def test_regressor_gives_the_models_numbers(tokenizer, tmp_path):
    model = with_large_weights(kbi.TextRegressor(make_encoder(tokenizer), tokenizer, sequence_length=9))
    export_saved_model(model, tmp_path / "served")
    np.testing.assert_allclose(serve(tmp_path / "served", text=TEXTS)["value"], model.predict(TEXTS)[:, 0], atol=1e-5)
    served = serve(tmp_path / "served", "pairs", text=TEXTS, text_pair=PAIRS)
    np.testing.assert_allclose(served["value"], model.predict((TEXTS, PAIRS))[:, 0], atol=1e-5)


def test_words_get_the_labels_of_the_task(tokenizer, tmp_path):
    names = ["O", "B-cat", "I-cat"]
    model = with_large_weights(kbi.TokenClassifier(make_encoder(tokenizer), 3, tokenizer, 9, class_names=names))
    export_saved_model(model, tmp_path / "served")
    texts = ["the cats sat \u200d on mat.", "", "dogs, cats, dogs, cats, dogs", "red", "cats sat on mat"]
    served = serve(tmp_path / "served", text=texts)
    task = named_entities.TASKS["ner"]
    sentences = [conll.Sentence(text.split(), ["O"] * len(text.split()), 0) for text in texts]
    rows = task.featurize(tokenizer, named_entities.LabelledSentences(sentences), names, 9)
    outputs = predict_rows(model, LengthBatches(tokenizer, rows, 3, 9, shuffle=False))
    expected = named_entities.word_labels(named_entities.LabelledSentences(sentences), rows, outputs, names)
    for row, labels in enumerate(expected):
        found = [label.decode() for label in served["labels"][row] if label]
        assert [word.decode() for word in served["words"][row] if word] == texts[row].split()
        assert len(found) == len(texts[row].split())
        if (rows.source.words[row] >= 0).sum() == len(found):  # others the task cuts, where the export has windows
            assert found == labels


def test_endings_get_the_models_scores(tokenizer, tmp_path):
    model = with_large_weights(kbi.MultipleChoice(make_encoder(tokenizer), tokenizer, sequence_length=9))
    export_saved_model(model, tmp_path / "served")
    endings = [["a dog", "the cat sat on a mat", ""], ["it ran", "rain", "red red"]]
    served = serve(tmp_path / "served", text=TEXTS[:2], endings=endings)
    expected = model.predict(model.rows((TEXTS[:2], endings)))
    np.testing.assert_allclose(served["logits"], expected, atol=1e-5)
    assert served["class_id"].tolist() == expected.argmax(1).tolist()


def test_next_sentences_and_vectors_are_the_models(tokenizer, tmp_path):
    model = with_large_weights(kbi.NextSentencePredictor(make_encoder(tokenizer), tokenizer, sequence_length=9))
    export_saved_model(model, tmp_path / "next")
    served = serve(tmp_path / "next", text=TEXTS, text_pair=PAIRS)
    np.testing.assert_allclose(served["logits"], model.predict((TEXTS, PAIRS)), atol=1e-5)
    embedder = with_large_weights(kbi.TextEmbedder(make_encoder(tokenizer), tokenizer, 9, normalize=True))
    export_saved_model(embedder, tmp_path / "vectors")
    np.testing.assert_allclose(serve(tmp_path / "vectors", text=TEXTS)["vector"], embedder.predict(TEXTS), atol=1e-5)


@pytest.mark.full
def test_moved_directory_loads_in_a_process_that_knows_only_tensorflow(classifier, classifier_directory, tmp_path):
    program = """
import json, sys
import tensorflow as tf, tensorflow_text
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](text=tf.constant(json.loads(sys.argv[2])))
assert "keras_bert_impl" not in sys.modules
print(json.dumps(served["logits"].numpy().tolist()))
"""
    moved = tmp_path / "moved"
    classifier_directory.rename(moved)
    try:
        command = [sys.executable, "-I", "-c", program, moved, json.dumps(TEXTS)]
        printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    finally:
        moved.rename(classifier_directory)
    np.testing.assert_allclose(json.loads(printed), classifier.predict(TEXTS, verbose=0), atol=1e-5)


TRAIN_ELSEWHERE = """
import sys
import keras, numpy as np
import keras_bert_impl as kbi
from keras_bert_impl.export import export_saved_model

tokenizer, directory, texts = kbi.WordPieceTokenizer(sys.argv[1].split()), sys.argv[2], sys.argv[3].split("|")
config = kbi.BertConfig(24, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=11)
classifier = kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer, sequence_length=9)
random = np.random.default_rng(5)
for weight in classifier.weights:
    weight.assign(random.normal(size=weight.shape, scale=0.4))
# A loss of the user's own, which another process does not know.
classifier.compile("adam", lambda y_true, y_pred: keras.ops.mean(y_pred))
export_saved_model(classifier, directory)
assert "keras_bert_impl.export.text_signatures" not in sys.modules  # it needs TensorFlow
np.save(directory + "/expected.npy", classifier.predict(texts, verbose=0))
"""


@pytest.mark.full
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_model_of_another_backend_is_served_with_its_own_outputs(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:  # to import it here would take seconds
        pytest.skip(f"{backend} is not installed")
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TRAIN_ELSEWHERE, " ".join(WORDS), tmp_path / "served", "|".join(TEXTS)]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    served = serve(tmp_path / "served", text=TEXTS)
    np.testing.assert_allclose(served["logits"], np.load(tmp_path / "served" / "expected.npy"), atol=1e-5)
    assert set(served["label"].tolist()) <= {b"0", b"1", b"2"}


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
def doubled(tmp_path, monkeypatch):
    """A user-defined class, in a module next to the script, that computes something else than its parent."""
    (tmp_path / "own_module.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("own_module").Doubled


@pytest.mark.full
def test_a_class_of_the_user_s_own_is_served_with_its_own_outputs(doubled, tokenizer, tmp_path, monkeypatch):
    model = with_large_weights(doubled(make_encoder(tokenizer), 3, tokenizer, sequence_length=9))
    export_saved_model(model, tmp_path / "here")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    export_saved_model(model, tmp_path / "by_another_process")
    monkeypatch.undo()
    for directory in ("here", "by_another_process"):
        served = serve(tmp_path / directory, text=TEXTS)["logits"]
        np.testing.assert_allclose(served, model.predict(TEXTS, verbose=0), atol=1e-5)


def test_another_process_is_given_the_class_that_computes(doubled, tokenizer):
    parent = Renamed(make_encoder(tokenizer), 3)
    assert handover.class_for_another_process(parent) is kbi.TextClassifier
    assert handover.class_for_another_process(doubled(make_encoder(tokenizer), 3)) is doubled

    class Hidden(doubled):
        pass

    with pytest.raises(ValueError, match=r"Hidden computes what its parent .* define the class at the top level of a"):
        handover.class_for_another_process(Hidden(make_encoder(tokenizer), 3))


@pytest.mark.full
def test_a_quantized_model_is_served_with_its_own_outputs(tokenizer, tmp_path):
    model = with_large_weights(kbi.TextClassifier(make_encoder(tokenizer), 3, tokenizer, sequence_length=9))
    model.quantize("int8")
    export_saved_model(model, tmp_path / "served")
    served = serve(tmp_path / "served", text=TEXTS)["logits"]
    np.testing.assert_allclose(served, model.predict(TEXTS, verbose=0), atol=1e-5)


@pytest.mark.full
def test_failure_of_the_other_process_is_shown(classifier, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(handover, "tokenizer_to_config", lambda tokenizer: {"vocabulary": [], "lowercase": True})
    with pytest.raises(RuntimeError, match=r"vocabulary has no \[PAD\]"):
        export_saved_model(classifier, tmp_path / "served")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def writes_a_file(monkeypatch):
    """Replaces the slow writing of graphs."""

    def write(model, tokenizer, sequence_length, target):
        (target / "assets.extra").mkdir(parents=True)
        (target / "saved_model.pb").write_text(f"length {sequence_length}")

    monkeypatch.setattr(text_signatures, "write", write)


def test_existing_directory_is_refused_and_left_as_it_is(classifier, writes_a_file, tmp_path):
    directory = tmp_path / "served"
    export_saved_model(classifier, directory)
    with pytest.raises(ValueError, match=r"served exists: .* overwrite=True"):
        export_saved_model(classifier, directory, sequence_length=5)
    assert (directory / "saved_model.pb").read_text() == "length 9"
    export_saved_model(classifier, directory, sequence_length=5, overwrite=True)
    assert (directory / "saved_model.pb").read_text() == "length 5"
    assert list(tmp_path.iterdir()) == [directory]


def test_overwrite_spares_what_is_no_saved_model(classifier, writes_a_file, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"or, if it holds saved_model\.pb, pass overwrite=True"):
        export_saved_model(classifier, tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_interrupted_writing_leaves_the_old_directory(classifier, tmp_path, monkeypatch):
    def write_half(model, tokenizer, sequence_length, target):
        target.mkdir()
        raise OSError("No space left on device")

    directory = tmp_path / "served"
    directory.mkdir()
    (directory / "saved_model.pb").write_text("old")
    monkeypatch.setattr(text_signatures, "write", write_half)
    with pytest.raises(OSError, match="No space"):
        export_saved_model(classifier, directory, overwrite=True)
    assert (directory / "saved_model.pb").read_text() == "old"
    assert list(tmp_path.iterdir()) == [directory]


def test_written_nothing_keeps_the_old_directory(classifier, tmp_path, monkeypatch):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "saved_model.pb").write_text("old")
    monkeypatch.setattr(text_signatures, "write", lambda *arguments: None)
    with pytest.raises(FileNotFoundError):
        export_saved_model(classifier, tmp_path / "served", overwrite=True)
    assert (tmp_path / "served" / "saved_model.pb").read_text() == "old"


def test_model_without_tokenizer_or_of_another_kind_is_refused(tokenizer, tmp_path):
    encoder = make_encoder(tokenizer)
    with pytest.raises(ValueError, match="BertEncoder has none: pass tokenizer="):
        export_saved_model(encoder, tmp_path / "served")
    with pytest.raises(ValueError, match="not of a Pretrainer"):
        export_saved_model(kbi.Pretrainer(encoder), tmp_path / "served", tokenizer)
    with pytest.raises(ValueError, match="sequence_length 12 exceeds the encoder's max_length 11"):
        export_saved_model(encoder, tmp_path / "served", tokenizer, sequence_length=12)
    assert list(tmp_path.iterdir()) == []
