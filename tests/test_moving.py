"""Runs the programs of docs/moving.md beside those of transformers, as they are written there.

The checkpoints are small and random, under the names that the page uses. For the same checkpoint, the two libraries
have to give the same results.
"""

import keras
import numpy as np
import pytest
import transformers
from documentation import ROOT, python_blocks

import keras_bert_impl as kbi

PAGE = "docs/moving.md"
NEWLY_INITIALISED = "ignore:.* newly initialised, they need training"
pytestmark = pytest.mark.filterwarnings(NEWLY_INITIALISED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The checkpoints that the page names."""
    folder = tmp_path_factory.mktemp("moving")
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary([page] * 3, 400))
    sizes = {"hidden_size": 12, "num_layers": 4, "num_heads": 3, "intermediate_size": 21, "initializer_range": 0.3}
    keras.utils.set_random_seed(5)
    for name, kind, arguments in (
        ("bert-base-uncased", kbi.MaskedLM, {}),
        ("minilm", kbi.TextEmbedder, {"pooling": "mean", "normalize": True}),
    ):
        encoder = kbi.BertEncoder(kbi.BertConfig(tokenizer.vocabulary_size, max_length=256, **sizes))
        kind(encoder, tokenizer=tokenizer, **arguments).save_pretrained(folder / name)
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Runs the blocks of a section that `transformers` is or is not in; returns their names and what they printed."""
    monkeypatch.chdir(folder)
    names = {}

    def run(heading, of_transformers=False):
        section = (ROOT / PAGE).read_text(encoding="utf-8").split(f"\n### {heading}\n")[1].split("\n##")[0]
        for block in python_blocks(PAGE):
            if block in section and ("transformers" in block) == of_transformers:
                exec(compile(block, PAGE, "exec"), names)
        return names, capsys.readouterr().out

    return run


def test_masked_words_have_the_probabilities_of_transformers(run):
    _, ours = run("Masked words")
    _, theirs = run("Masked words", of_transformers=True)
    assert ours == theirs and len(ours.splitlines()) == 3


@pytest.mark.full
def test_what_is_fine_tuned_classifies_the_same_in_transformers(run):
    names, printed = run("Fine-tuning")
    assert "[Label(label=" in printed
    (expected,) = transformers.pipeline("text-classification", model="my_classifier")("What a wonderful film.")
    (found,) = names["classifier"].classify("What a wonderful film.")
    assert (found.label, found.probability) == (expected["label"], pytest.approx(expected["score"], abs=1e-5))
    assert "'score'" in run("Fine-tuning", of_transformers=True)[1]


def test_entities_have_the_scores_and_characters_of_transformers(run):
    names, _ = run("Named entities")
    bias = names["tagger"].get_layer("classifier").bias
    bias.assign(bias - np.array([9, 0, 0, 0, 0, 0, 0]))  # otherwise so small a model finds no entities
    names["tagger"].save_pretrained("my_tagger")
    theirs, _ = run("Named entities", of_transformers=True)
    text = "Ada Lovelace works for Google in New York."
    ours = kbi.TokenClassifier.from_pretrained("my_tagger").tag(text)
    expected = theirs["tag"](text)
    assert [(one["entity_group"], one["start"], one["end"]) for one in expected] == [
        (one.label, one.start, one.end) for one in ours
    ]
    assert ours and [one.score for one in ours] == pytest.approx([float(one["score"]) for one in expected], abs=1e-5)


def test_vectors_and_the_joined_layers_are_those_of_transformers(run):
    names, _ = run("Sentence vectors")
    run("Sentence vectors", of_transformers=True)
    np.testing.assert_allclose(names["vectors"], names["mean"], atol=1e-5)
    np.testing.assert_allclose(names["last_four"], names["first_of_last_four"], atol=1e-5)
