"""A BERT, RoBERTa or DistilBERT becomes a Longformer."""

import numpy as np
import pytest
from made_exports import with_large_weights

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import grow, lengthen, open_checkpoint

WINDOW = 12  # six to either side, so that all seven tokens of a row see each other
SIZES = {
    "hidden_size": 12, "num_layers": 2, "num_heads": 3, "intermediate_size": 14, "max_length": 11,
    "hidden_dropout_rate": 0.2,
}  # fmt: skip
ENCODERS = {
    "bert": (kbi.BertEncoder, {"layer_norm_epsilon": 1e-6}),
    "roberta": (kbi.RobertaEncoder, {"pad_id": 0}),
    "distilbert": (kbi.DistilBertEncoder, {}),
}
every_encoder = pytest.mark.parametrize("family", ENCODERS)
TEXTS = ["the cat sat on a", "it slept", "a red dog ran ."]
MASKED = ["the cat [MASK] on a", "it [MASK]", "a red [MASK] ran ."]


@pytest.fixture
def saved(small_tokenizer, tmp_path):
    """Function from a family and a head to the model and the directory where it is saved."""

    def make(family, head, *arguments, **more):
        encoder_class, further = ENCODERS[family]
        config = encoder_class.config_class(small_tokenizer.vocabulary_size, **SIZES, **further)
        encoder = encoder_class(config)
        model = encoder if head is None else head(encoder, *arguments, tokenizer=small_tokenizer, **more)
        with_large_weights(model)
        model.save_pretrained(tmp_path / "short")
        small_tokenizer.save_pretrained(tmp_path / "short")
        return model, tmp_path / "short"

    return make


def longer(path, **arguments):
    return lengthen(open_checkpoint(path), **{"max_length": 40, "attention_window": WINDOW, **arguments})


def rows_of(tokenizer, lengths, seed=0):
    random, width = np.random.default_rng(seed), max(lengths)
    mask = (np.arange(width) < np.array(lengths)[:, None]).astype("int32")
    ids = random.integers(5, tokenizer.vocabulary_size, mask.shape) * mask
    return {"token_ids": ids.astype("int32"), "segment_ids": (np.arange(width) > 3) * mask, "padding_mask": mask}


@every_encoder
def test_short_rows_have_the_same_vectors_and_long_ones_are_read(family, saved, small_tokenizer):
    model, path = saved(family, None)
    found = kbi.LongformerEncoder.from_pretrained(longer(path))
    assert found.config.max_length == 40 and found.config.hidden_dropout_rate == 0.2
    rows = rows_of(small_tokenizer, [7, 4, 1])
    expected, states = (one.predict(rows, verbose=0)["sequence_output"] for one in (model, found))
    mask = rows["padding_mask"] == 1
    np.testing.assert_allclose(states[mask], expected[mask], atol=1e-5)
    rows = rows_of(small_tokenizer, [11, 9])
    expected, states = (one.predict(rows, verbose=0)["sequence_output"] for one in (model, found))
    assert np.abs(states - expected).max() > 1e-3  # the first no longer sees the last
    long = found.predict(rows_of(small_tokenizer, [40]), verbose=0)["sequence_output"]
    assert long.shape == (1, 40, 12) and np.isfinite(long).all()


@every_encoder
def test_positions_are_repeated(family, saved):
    model, path = saved(family, None)
    old, new = (
        one.get_layer("position_embedding").get_weights()[0]
        for one in (model, kbi.LongformerEncoder.from_pretrained(longer(path)))
    )
    trained = old[len(old) - 11 :]
    assert len(new) == 41  # that of padding is the first
    np.testing.assert_array_equal(new[1:], np.concatenate([trained] * 4)[:40])


@pytest.mark.parametrize(
    "family, head, arguments",
    [
        ("bert", kbi.MaskedLM, ()),
        ("bert", kbi.TextClassifier, (3,)),
        ("bert", kbi.TokenClassifier, (3,)),
        ("bert", kbi.TextEmbedder, ()),
        ("roberta", kbi.TextClassifier, (3,)),
        ("roberta", kbi.MaskedLM, ()),
        ("distilbert", kbi.MaskedLM, ()),
        ("distilbert", kbi.TokenClassifier, (3,)),
    ],
)
def test_heads_answer_short_texts_as_before(family, head, arguments, saved):
    """Global tokens, such as the first of a text, begin with the projections of the others."""
    model, path = saved(family, head, *arguments)
    found = head.from_pretrained(longer(path))
    assert found.sequence_length == 40
    rows = model.rows(MASKED if head is kbi.MaskedLM else TEXTS)
    assert rows["padding_mask"].sum(axis=1).max() == 7
    expected, states = (one.predict(rows, verbose=0) for one in (model, found))
    if head is kbi.TokenClassifier:  # those of padding differ
        expected, states = (array[rows["padding_mask"] == 1] for array in (expected, states))
    np.testing.assert_allclose(states, expected, atol=2e-5)


def test_questions_are_answered_as_before(saved):
    model, path = saved("bert", kbi.QuestionAnswerer)
    found = kbi.QuestionAnswerer.from_pretrained(longer(path))
    questions, contexts = ["the cat", "it"], ["sat .", "a dog"]
    rows = model.rows((questions, contexts))
    mask = rows["padding_mask"] == 1
    assert mask.sum(axis=1).max() <= 7
    expected, states = (one.predict(rows, verbose=0)[mask] for one in (model, found))
    np.testing.assert_allclose(states, expected, atol=2e-5)


def test_a_head_with_another_activation_is_left_out(saved, capsys):
    _, path = saved("distilbert", kbi.TextClassifier, 3)
    with pytest.warns(UserWarning, match="no values for .*pooler"):
        kbi.TextClassifier.from_pretrained(longer(path))
    assert "pooler is left out: Longformer has no such head" in capsys.readouterr().out


def test_transformers_opens_what_is_saved(saved, small_tokenizer, tmp_path, capsys):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model, path = saved("bert", None)
    kbi.LongformerEncoder.from_pretrained(longer(path)).save_pretrained(tmp_path / "long")
    assert "positions 11 to 39 repeat those from 0 on" in capsys.readouterr().out
    theirs = transformers.LongformerModel.from_pretrained(tmp_path / "long").eval()
    rows = rows_of(small_tokenizer, [7, 5])
    names = {"input_ids": "token_ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
    with torch.no_grad():
        found = theirs(**{name: torch.tensor(rows[ours]).long() for name, ours in names.items()}).last_hidden_state
    mask = rows["padding_mask"] == 1
    expected = model.predict(rows, verbose=0)["sequence_output"]
    np.testing.assert_allclose(found.numpy()[mask], expected[mask], atol=1e-5)
    again = kbi.LongformerEncoder.from_pretrained(tmp_path / "long")
    np.testing.assert_allclose(again.predict(rows, verbose=0)["sequence_output"][mask], expected[mask], atol=1e-5)


def test_what_cannot_be_lengthened_is_refused(saved, small_tokenizer, tmp_path):
    _, path = saved("bert", None)
    with pytest.raises(ValueError, match="max_length 10 is below the 11 positions of"):
        longer(path, max_length=10)
    with pytest.raises(ValueError, match="max_length is '30', expected a number of tokens"):
        longer(path, max_length="30")
    for change in (lengthen, grow):
        with pytest.raises(TypeError, match=r"Got 'runs/mine', which is not an open checkpoint: pass open_checkpoint"):
            change("runs/mine", max_length=30)
    (path / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"has no vocabulary that tells the id of \[SEP\]: pass sep_id"):
        longer(path)
    assert longer(path, sep_id=3).config.sep_id == 3
    config = kbi.ElectraConfig(small_tokenizer.vocabulary_size, embedding_size=9, **SIZES)
    kbi.ElectraEncoder(config).save_pretrained(tmp_path / "electra")
    with pytest.raises(ValueError, match="is a ELECTRA, whose blocks are not Longformer's: expected one of bert"):
        longer(tmp_path / "electra")
