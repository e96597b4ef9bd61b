"""Models over raw text with other tokenizers than WordPiece: rows, offsets, masks and files are the tokenizer's own."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from made_tokenizers import (
    SENTENCES,
    albert_tokenizer,
    bigbird_tokenizer,
    byte_pair_tokenizer,
    deberta_tokenizer,
    deberta_v1_tokenizer,
    mmbert_tokenizer,
    modernbert_tokenizer,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.fit_inputs import evaluation
from keras_bert_impl.preprocessing.labelled_words import split_texts, split_words
from keras_bert_impl.preprocessing.question_windows import Question, make_windows
from keras_bert_impl.text.tokenizers.rows import pack_rows

TEXT = "In 2018,  Google released BERT."


@pytest.fixture(scope="module")
def tokenizer():
    return byte_pair_tokenizer()


@pytest.fixture(
    scope="module",
    params=full_but(
        [
            byte_pair_tokenizer,
            albert_tokenizer,
            xlm_roberta_tokenizer,
            xlnet_tokenizer,
            bigbird_tokenizer,
            modernbert_tokenizer,
            mmbert_tokenizer,
            deberta_tokenizer,
            deberta_v1_tokenizer,
        ],
        *(byte_pair_tokenizer, albert_tokenizer, xlnet_tokenizer, modernbert_tokenizer),
    ),
)
def any_tokenizer(request):
    return request.param()


def model_of(kind, tokenizer, **arguments):
    """A model whose weights are so large that texts differ in the outputs."""
    model = kind(kbi.BertEncoder(revealing_config(tokenizer, max_length=48)), tokenizer=tokenizer, **arguments)
    random = np.random.default_rng(11)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.6))
    if hasattr(model, "loss") and model.loss is not None:
        model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    return model


def test_a_classifier_reads_pairs_as_the_template_lays_them_out(any_tokenizer):
    model, found = model_of(kbi.TextClassifier, any_tokenizer, num_classes=2), any_tokenizer.encode("The cat", "Paris")
    ids, segments = (np.array([row], "int32") for row in (found.ids, found.type_ids))
    expected = model.predict({"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones_like(ids)}, verbose=0)
    np.testing.assert_allclose(model.predict((["The cat"], ["Paris"]), verbose=0), expected, atol=1e-5)
    assert 0 <= model.classify("The cat sat.")[0].probability <= 1


def test_words_in_lists_and_in_a_text_have_the_same_pieces(tokenizer):
    words = ["The", "cat", "isn't", "in", "Zürich", "."]
    [alone] = split_words(tokenizer, [words])
    [text] = split_texts(tokenizer, ["The cat isn't in Zürich ."])
    assert alone.ids == text.ids and alone.word[-1] == 5
    found = ["The cat isn't in Zürich ."[start:end] for start, end in text.spans]
    assert found == ["The", "cat", "isn", "'t", "in", "Zürich", "."]


def test_entities_have_the_characters_of_the_text(any_tokenizer):
    model = model_of(kbi.TokenClassifier, any_tokenizer, num_classes=2, class_names=["N", "V"])
    found = model.tag(TEXT)  # without a label "O" every word stands for itself
    assert [entity.text for entity in found] == ["In", "2018", ",", "Google", "released", "BERT", "."]
    assert all(TEXT[entity.start : entity.end] == entity.text for entity in found)
    assert len(model.tag([["In", "2018"]])[0]) == 2


@pytest.mark.parametrize("answer", ["Paris", "Bern", "capital of France"])
def test_the_label_of_a_window_is_the_answer(any_tokenizer, answer):
    context = SENTENCES[3]
    question = Question("q", "What is it?", context, [(answer, context.index(answer))])
    windows = make_windows(any_tokenizer, [question], sequence_length=40, stride=7, question_length=10)
    held = [row for row, end in enumerate(windows.end) if end != windows.cls_place[row]]
    assert held
    packed = pack_rows(any_tokenizer, windows.first, windows.second, 40)
    for row in held:
        ids = packed["token_ids"][row]
        assert packed["padding_mask"][row].sum() <= 40
        shown = any_tokenizer.decode(ids[windows.start[row] : windows.end[row] + 1].tolist())
        assert (answer.lower() if any_tokenizer.lowercase else answer) in shown
        offsets = windows.offsets[row]
        begin, end = windows.start[row] - windows.before[row], windows.end[row] - windows.before[row]
        assert answer in context[offsets[begin, 0] : offsets[end, 1]]


def test_masks_are_filled_with_pieces_that_read_as_text(any_tokenizer):
    model, words = model_of(kbi.MaskedLM, any_tokenizer), set(map(any_tokenizer.piece_text, range(70)))
    for mask in any_tokenizer.mask_texts:
        [guesses] = model.fill_mask(f"The capital is {mask}.", top_k=any_tokenizer.vocabulary_size)
        assert len(guesses) == any_tokenizer.vocabulary_size and {guess.token for guess in guesses} >= words
        [best] = model.fill_mask(f"The capital is {mask}.", top_k=1, together=True)
        assert best.text == f"The capital is{best.tokens[0]}."


def test_fit_masks_texts_but_no_control_tokens(tokenizer):
    model = model_of(kbi.MaskedLM, tokenizer)
    history = model.fit(SENTENCES, batch_size=5, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    inputs, labels, weights = evaluation(model, SENTENCES, None, None, None, None)
    assert not set(labels[weights > 0].tolist()) & {tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id}
    assert (inputs["token_ids"] == tokenizer.mask_id).any()


def test_a_saved_model_comes_back_with_its_tokenizer(any_tokenizer, tmp_path):
    model = model_of(kbi.TextClassifier, any_tokenizer, num_classes=2, sequence_length=20)
    expected = model.predict(SENTENCES, verbose=0)
    model.save_pretrained(tmp_path / "checkpoint")
    assert set(any_tokenizer.files) <= {path.name for path in (tmp_path / "checkpoint").iterdir()}
    again = kbi.TextClassifier.from_pretrained(tmp_path / "checkpoint")
    assert again.tokenizer == any_tokenizer
    assert again.sequence_length == 20
    np.testing.assert_allclose(again.predict(SENTENCES, verbose=0), expected, atol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert again.tokenizer == any_tokenizer
    np.testing.assert_allclose(again.predict(SENTENCES, verbose=0), expected, atol=1e-5)


def test_a_checkpoint_that_is_overwritten_keeps_no_vocabulary_of_another_tokenizer(
    tokenizer, small_tokenizer, tmp_path
):
    model_of(kbi.TextClassifier, tokenizer, num_classes=2).save_pretrained(tmp_path)
    model_of(kbi.TextClassifier, small_tokenizer, num_classes=2).save_pretrained(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert "vocab.txt" in names and not {"vocab.json", "merges.txt"} & names
    assert kbi.TextClassifier.from_pretrained(tmp_path).tokenizer == small_tokenizer


def test_changes_for_wordpiece_alone_refuse_another_tokenizer(tokenizer, tmp_path):
    model = model_of(kbi.TextClassifier, tokenizer, num_classes=2)
    model.save_pretrained(tmp_path / "checkpoint")
    checkpoint = kbi.checkpoints.open_checkpoint(tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="has a BytePairTokenizer as its tokenizer: words can be added to a"):
        kbi.checkpoints.grow(checkpoint, new_words=["new"])
