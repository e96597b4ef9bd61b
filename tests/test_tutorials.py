"""Runs every program of docs/tutorials.md, ours and those of transformers, as they are written there.

The checkpoints are small and random, under the names that the page uses, and are trained for two epochs; the two
libraries have to give the same figures for the same checkpoint.
"""

import keras
import numpy as np
import pytest
import transformers
from documentation import ROOT, python_blocks

import keras_bert_impl as kbi

PAGE = "docs/tutorials.md"
FILLER = "the film was shown in a hall and the people who saw it went home after two hours of it . "
NEWLY_INITIALISED = "ignore:.* newly initialised, they need training"
pytestmark = pytest.mark.filterwarnings(NEWLY_INITIALISED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The checkpoints and reviews that the page names."""
    folder = tmp_path_factory.mktemp("tutorials")
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary([page, FILLER] * 3, 400))
    sizes = {"hidden_size": 12, "num_layers": 4, "num_heads": 3, "intermediate_size": 21, "initializer_range": 0.3}
    keras.utils.set_random_seed(5)
    for name, kind, arguments in (
        ("bert-base-uncased", kbi.MaskedLM, {}),
        ("minilm", kbi.TextEmbedder, {"pooling": "mean", "normalize": True}),
    ):
        encoder = kbi.BertEncoder(kbi.BertConfig(tokenizer.vocabulary_size, max_length=256, **sizes))
        kind(encoder, tokenizer=tokenizer, **arguments).save_pretrained(folder / name)
    for number in range(16):
        split, label = ("train", "train", "train", "test")[number % 4], ("pos", "neg")[number // 4 % 2]
        path = folder / "aclImdb" / split / label / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILLER * 14 + {"pos": "wonderful .", "neg": "boring ."}[label], encoding="utf-8")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Runs the blocks of a tutorial that `transformers` is or is not in; returns their names and what they printed."""
    monkeypatch.chdir(folder)
    names = {}

    def run(number, of_transformers=False):
        for block in tutorial(number):
            if ("transformers" in block) == of_transformers:
                exec(compile(block.replace("epochs=30", "epochs=2"), PAGE, "exec"), names)
        return names, capsys.readouterr().out

    return run


def tutorial(number):
    """The Python blocks of a tutorial."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    section = text.split(f"\n## {number}. ")[1].split("\n## ")[0]
    return [block for block in python_blocks(PAGE) if block in section]


def test_masked_words_have_the_probabilities_of_transformers(run):
    _, ours = run(1)
    _, theirs = run(1, of_transformers=True)
    assert ours == theirs and len(ours.splitlines()) == 3


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.*were cut to that length")
def test_reviews_are_learnt_from_and_classified(run):
    names, printed = run(2)
    assert {"accuracy", "loss"} == set(names["classifier"].evaluate(["film"], ["pos"], verbose=0, return_dict=True))
    assert len(names["texts"]) == 12 and set(names["labels"]) == {"pos", "neg"} and "[Label(label=" in printed
    (expected,) = transformers.pipeline("text-classification", model="my_classifier")("What a wonderful film.")
    (found,) = names["classifier"].classify("What a wonderful film.")
    assert (found.label, found.probability) == (expected["label"], pytest.approx(expected["score"], abs=1e-5))
    assert "'score'" in run(2, of_transformers=True)[1]


def test_the_question_is_answered_from_the_passage(run):
    names, printed = run(3)
    answer = names["answer"]
    assert answer.text == names["passage"][answer.start : answer.end] and answer.text in printed
    assert len(tutorial(3)[0].strip().splitlines()) - 1 <= 10  # one line is empty


def test_entities_have_the_scores_and_characters_of_transformers(run):
    assert len(tutorial(4)[0].strip().splitlines()) - 1 <= 8
    names, _ = run(4)
    bias = names["tagger"].get_layer("classifier").bias
    bias.assign(bias - np.array([9, 0, 0, 0, 0, 0, 0]))  # otherwise so small a model finds no entities
    names["tagger"].save_pretrained("my_tagger")
    theirs, _ = run(4, of_transformers=True)
    text = "Ada Lovelace works for Google in New York."
    ours = kbi.TokenClassifier.from_pretrained("my_tagger").tag(text)
    expected = theirs["tag"](text)
    assert [(one["entity_group"], one["start"], one["end"]) for one in expected] == [
        (one.label, one.start, one.end) for one in ours
    ]
    assert ours and [one.score for one in ours] == pytest.approx([float(one["score"]) for one in expected], abs=1e-5)


def test_vectors_and_the_joined_layers_are_those_of_transformers(run):
    names, printed = run(5)
    assert "[Match(number=" in printed
    run(5, of_transformers=True)
    np.testing.assert_allclose(names["vectors"], names["mean"], atol=1e-5)
    np.testing.assert_allclose(names["last_four"], names["first_of_last_four"], atol=1e-5)
