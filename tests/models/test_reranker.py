"""A Reranker scores, ranks and learns as a cross-encoder of sentence-transformers does."""

import json
import shutil

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from made_tokenizers import modernbert_tokenizer
from tiers import full_but, on, once

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing import fit_inputs
from keras_bert_impl.preprocessing.column_rows import labelled_pairs

QUERY = "the cat sat"
TEXTS = ["a dog ran in the rain", "the cat", "on a mat . the cat sat on a mat in the rain", ""]


@pytest.fixture
def reranker(small_tokenizer):
    return strong(kbi.Reranker(kbi.BertEncoder(revealing_config(small_tokenizer, max_length=24)), small_tokenizer))


def strong(model, scale=0.4):
    """The model with weights so large that texts differ in their scores."""
    random = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=scale))
    return model


def logits_of(model, texts, query=QUERY):
    return model.predict(([query] * len(texts), texts), verbose=0)[:, 0]


def test_texts_are_ranked_by_the_sigmoid_of_their_logit(reranker):
    logits = logits_of(reranker, TEXTS)
    scores = reranker.scores(QUERY, TEXTS)
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-logits.astype("float64"))), atol=1e-6)
    ranked = reranker.rank(QUERY, TEXTS)
    assert [match.number for match in ranked] == np.argsort(-logits, kind="stable").tolist()
    assert all(match.text == TEXTS[match.number] and match.score == scores[match.number] for match in ranked)
    assert reranker.rank(QUERY, TEXTS, top_k=2) == ranked[:2] and reranker.rank(QUERY, TEXTS, top_k=9) == ranked
    linear = kbi.Reranker(reranker.encoder, reranker.tokenizer, score_activation="linear")
    linear.set_weights(reranker.get_weights())
    np.testing.assert_allclose(linear.scores(QUERY, TEXTS), logits, atol=1e-6)


def test_several_queries_have_texts_of_their_own(reranker):
    lists = [TEXTS[:1], [], TEXTS[1:]]
    found = reranker.rank(["the cat", "a dog", QUERY], lists)
    assert [len(one) for one in found] == [1, 0, 3]
    for match, alone in zip(found[2], reranker.rank(QUERY, TEXTS[1:]), strict=True):
        assert match[:2] == alone[:2] and match.score == pytest.approx(alone.score, abs=1e-6)
    with pytest.raises(ValueError, match="zip"):
        reranker.rank(["the cat", "a dog"], lists)
    for query, texts in (("the cat", "a dog"), (["the cat", "a dog"], ["a cat", "dog"])):
        with pytest.raises(ValueError, match="Got one text instead of a list of texts"):
            reranker.rank(query, texts)
    assert reranker.rank("the cat", iter(TEXTS)) == reranker.rank("the cat", TEXTS)
    with pytest.raises(ValueError, match="Reranker got single texts"):
        reranker.predict(TEXTS)


def test_pairs_with_their_relevance_are_learnt(small_tokenizer):
    keras.utils.set_random_seed(0)
    model = kbi.Reranker(kbi.BertEncoder(revealing_config(small_tokenizer, max_length=24)), small_tokenizer)
    model.compile(
        keras.optimizers.Adam(3e-3),
        "binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
        **QUICK_STEPS,
    )
    pairs = (["the cat", "the dog"] * 8, ["a cat sat", "a dog ran", "the dog in rain", "the cat on a mat"] * 4)
    relevance = [1, 1, 0, 0] * 4
    history = model.fit(
        pairs, relevance, epochs=12, batch_size=4, verbose=0, validation_data=(pairs, relevance)
    ).history
    assert history["loss"][-1] < history["loss"][0] and history["val_auc"][-1] > 0.7
    logits = model.predict(pairs, verbose=0)[:, 0]
    figures = model.evaluate(pairs, relevance, return_dict=True, verbose=0)
    assert figures["accuracy"] == pytest.approx(np.mean((logits > 0) == np.array(relevance)))
    expected = np.mean(np.maximum(logits, 0) - logits * relevance + np.log1p(np.exp(-np.abs(logits))))
    assert figures["loss"] == pytest.approx(expected, abs=1e-5)


def test_negatives_are_pairs_of_their_own(reranker):
    columns = (["the cat", "a dog"], ["cat sat", "dog ran"], ["rain", "mat"], ["in rain", "on mat"])
    (queries, texts), labels, weights = labelled_pairs(columns, None, [0.5, 2])
    assert queries == ["the cat"] * 3 + ["a dog"] * 3
    assert texts == ["cat sat", "rain", "in rain", "dog ran", "mat", "on mat"]
    assert labels.tolist() == [1, 0, 0, 1, 0, 0] and weights.tolist() == [0.5] * 3 + [2] * 3
    rows = list(zip(*columns, strict=True))
    assert labelled_pairs(rows)[0] == (queries, texts)
    expected = reranker.evaluate((queries, texts), labels, verbose=0, return_dict=True)
    for given in (columns, rows, np.array(rows)):
        assert reranker.evaluate(given, verbose=0, return_dict=True) == pytest.approx(expected)
    reranker.compile("sgd", "binary_crossentropy", **QUICK_STEPS)
    history = reranker.fit(columns, validation_data=columns, verbose=0).history
    assert np.isfinite(history["loss"] + history["val_loss"]).all()
    with pytest.raises(ValueError, match="Queries, positives and negatives take no labels"):
        reranker.fit(columns, [1, 0])


def test_fractions_of_relevance_count_as_relevant_above_a_half(reranker):
    pairs = ([QUERY] * 4, TEXTS)
    order = np.argsort(np.argsort(logits_of(reranker, TEXTS)))  # 0 to 3, the most relevant last
    relevance = np.array([0.1, 0.2, 0.6, 0.9])[order]
    assert reranker.evaluate(pairs, relevance, verbose=0, return_dict=True)["auc"] == pytest.approx(1.0, abs=0.01)
    assert reranker.evaluate(pairs, 1 - relevance, verbose=0, return_dict=True)["auc"] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("form", [["accuracy"], ["ACC"], [["accuracy"]], "weighted", "object"])
def test_accuracy_is_of_the_sign_of_the_logit_however_it_is_asked_for(form, reranker):
    pairs, logits = ([QUERY] * 4, TEXTS), logits_of(reranker, TEXTS)
    shift = float(np.sort(logits)[1:3].mean()) - 0.2  # so that a threshold of 0.5 would count otherwise
    bias = reranker.get_layer("classifier").bias
    bias.assign(bias - shift)
    relevance = [1, 0, 1, 1]
    options = {"weighted_metrics": ["accuracy"]} if form == "weighted" else {"metrics": form}
    if form == "object":
        options = {"metrics": [keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)]}
    reranker.compile("sgd", "binary_crossentropy", **options, **QUICK_STEPS)
    found = reranker.evaluate(pairs, relevance, verbose=0, return_dict=True)
    (accuracy,) = (value for name, value in found.items() if name != "loss")
    assert accuracy == pytest.approx(np.mean((logits - shift > 0) == np.array(relevance)))


def test_what_another_model_left_in_a_directory_does_not_change_scores(reranker, small_tokenizer, tmp_path):
    kbi.TextEmbedder(reranker.encoder, tokenizer=small_tokenizer, sequence_length=12).save_pretrained(tmp_path)
    left = {"activation_fn": "torch.nn.modules.linear.Identity"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(left))
    reranker.save_pretrained(tmp_path)
    again = kbi.Reranker.from_pretrained(tmp_path)
    assert (again.score_activation, again.sequence_length) == ("sigmoid", reranker.sequence_length)


def test_a_converted_checkpoint_shows_the_same_scores(reranker, tmp_path):
    from keras_bert_training.commands.convert import ConvertConfig, run

    model = kbi.Reranker(reranker.encoder, reranker.tokenizer, sequence_length=20, score_activation="linear")
    model.save_pretrained(tmp_path / "one")
    run(ConvertConfig(str(tmp_path / "one"), str(tmp_path / "other"), "huggingface"))
    again = kbi.Reranker.from_pretrained(tmp_path / "other")
    assert (again.score_activation, again.sequence_length) == ("linear", 20)


def test_a_split_for_validation_divides_queries_and_not_their_pairs(reranker):
    words = [*QUERY.split(), *" ".join(TEXTS).split()][:10]
    columns = (words, [f"{word} cat" for word in words], [f"{word} dog" for word in words])
    given = fit_inputs.Training(columns, None, np.arange(10), None, 0.3, None, True)
    found = fit_inputs.training(reranker, given, 4, None, None, None)
    rows, judged = found.x.rows, found.validation_data[0].rows
    assert judged.weights.tolist() == [7, 7, 8, 8, 9, 9] and judged.labels.ravel().tolist() == [1, 0] * 3
    assert sorted(rows.weights.tolist()) == sorted([*range(7)] * 2) and len(rows.first) == 14


def test_grades_beyond_one_are_refused_by_the_cross_entropy_alone(reranker):
    pairs = ([QUERY] * 2, TEXTS[:2])
    with pytest.raises(ValueError, match=r"labels\[1\] is 3.*, but the cross-entropy takes a relevance from 0 to 1"):
        reranker.fit(pairs, [0, 3], verbose=0)
    reranker.compile("sgd", "mean_squared_error", **QUICK_STEPS)
    reranker.fit(pairs, [-4.5, 3], verbose=0)


def test_a_keras_file_keeps_how_scores_are_shown(reranker, tmp_path):
    model = kbi.Reranker(reranker.encoder, reranker.tokenizer, score_activation="linear")
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.scores(QUERY, TEXTS), model.scores(QUERY, TEXTS), atol=1e-6)
    with pytest.raises(ValueError, match="score_activation 'tanh' is unknown; known are sigmoid, linear"):
        kbi.Reranker(reranker.encoder, reranker.tokenizer, score_activation="tanh")


def models(small_tokenizer):
    """A Reranker over BERT and one over ModernBERT."""
    modern = modernbert_tokenizer()
    config = kbi.ModernBertConfig(
        **{"vocabulary_size": modern.vocabulary_size, "hidden_size": 16, "num_layers": 3, "num_heads": 2},
        **{"max_length": 24, "pad_id": modern.pad_id, "local_attention": 8, "classifier_pooling": "mean"},
    )
    yield kbi.BertEncoder(revealing_config(small_tokenizer, max_length=24)), small_tokenizer
    yield kbi.ModernBertEncoder(config), modern


@pytest.mark.filterwarnings("ignore:.* were truncated to that length")
@pytest.mark.parametrize("score_activation", full_but(["sigmoid", "linear"], "sigmoid"))
def test_scores_are_those_of_sentence_transformers_in_both_directions(score_activation, small_tokenizer, tmp_path):
    cross_encoder = pytest.importorskip("sentence_transformers").CrossEncoder
    texts = [*TEXTS, "the cat on a mat " * 9]
    for number, (encoder, tokenizer) in enumerate(models(small_tokenizer)):
        ours = strong(kbi.Reranker(encoder, tokenizer, score_activation=score_activation))
        ours.save_pretrained(tmp_path / f"ours{number}")
        theirs = cross_encoder(str(tmp_path / f"ours{number}"), device="cpu")
        expected = theirs.predict([(QUERY, text) for text in texts])
        np.testing.assert_allclose(ours.scores(QUERY, texts), expected, atol=1e-5)
        theirs_ranked = theirs.rank(QUERY, texts, top_k=3)
        ours_ranked = ours.rank(QUERY, texts, top_k=3)
        assert [match["corpus_id"] for match in theirs_ranked] == [match.number for match in ours_ranked]
        theirs.save_pretrained(str(tmp_path / f"theirs{number}"))
        again = kbi.Reranker.from_pretrained(tmp_path / f"theirs{number}")
        assert again.score_activation == score_activation and again.sequence_length == 24
        np.testing.assert_allclose(again.scores(QUERY, texts), expected, atol=1e-5)


@once
def test_what_would_change_scores_is_refused(reranker, tmp_path):
    reranker.save_pretrained(tmp_path / "saved")

    def changed(**files):
        folder = tmp_path / f"changed{len(list(tmp_path.iterdir()))}"
        shutil.copytree(tmp_path / "saved", folder)
        for name, change in files.items():
            path = folder / f"{name}.json"
            content = json.loads(path.read_text()) if path.is_file() else {}
            path.write_text(json.dumps(change if isinstance(change, list) else {**content, **change}))
        return folder

    transformer = {"type": "sentence_transformers.base.modules.transformer.Transformer", "path": ""}
    older = "sbert_ce_default_activation_function"
    read = kbi.Reranker.from_pretrained
    found = read(changed(config={"sentence_transformers": None, older: "torch.nn.modules.linear.Identity"}))
    assert found.score_activation == "linear"
    assert read(changed(config={"sentence_transformers": None})).score_activation == "sigmoid"
    with pytest.raises(ValueError, match=r"config.json: the activation is 'mine.Own', which Reranker does not support"):
        read(changed(config={"sentence_transformers": {"activation_fn": "mine.Own"}}))
    own = changed(config={"sentence_transformers": {"activation_fn": "mine.Own"}})
    assert read(own, score_activation="linear", sequence_length=20).sequence_length == 20
    with pytest.raises(ValueError, match=r"modules.json: the modules are Transformer, LogitScore"):
        read(changed(modules=[transformer, {"type": "sentence_transformers.LogitScore", "path": "1"}]))
    prompts = {"default_prompt_name": "query", "prompts": {"query": "q: "}}
    with pytest.raises(ValueError, match=r"default_prompt_name is 'query'"):
        read(changed(modules=[transformer], config_sentence_transformers=prompts))
    shorter = changed(modules=[transformer], sentence_bert_config={"max_seq_length": 12})
    assert read(shorter).sequence_length == 12


@on("tensorflow")
@pytest.mark.full
def test_an_export_takes_pairs_of_strings(reranker, tmp_path):
    tf = pytest.importorskip("tensorflow")
    kbi.export.export_saved_model(reranker, tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["pairs"]
    found = served(text=tf.constant([QUERY] * 4), text_pair=tf.constant(TEXTS))["value"].numpy()
    np.testing.assert_allclose(found, logits_of(reranker, TEXTS), atol=1e-5)
