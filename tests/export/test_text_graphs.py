"""SavedModels of families whose tokenizer is not WordPiece take strings and answer as the models do."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from families import CONFIGS, encoder_of
from made_tokenizers import (
    SENTENCES,
    albert_tokenizer,
    bigbird_tokenizer,
    byte_pair_tokenizer,
    deberta_tokenizer,
    deberta_v1_tokenizer,
    eurobert_tokenizer,
    mmbert_tokenizer,
    modernbert_tokenizer,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.export import export_saved_model

pytestmark = on("tensorflow")

TEXTS = [*SENTENCES, "", "[CLS] ''Café'' 日本 <s>"]
PAIRS = [*SENTENCES[3:], "Who?", "", "the dog ran " * 9, "a", "</s>"]
MADE = {
    "Albert": albert_tokenizer,
    "Roberta": byte_pair_tokenizer,
    "Longformer": byte_pair_tokenizer,
    "BigBird": bigbird_tokenizer,
    "XLMRoberta": xlm_roberta_tokenizer,
    "XLNet": xlnet_tokenizer,
    "ModernBert": modernbert_tokenizer,
    "ModernBert of mmBERT": mmbert_tokenizer,
    "EuroBert": eurobert_tokenizer,
    "Deberta": deberta_v1_tokenizer,
    "DebertaV2": deberta_tokenizer,
}


@pytest.fixture(scope="module")
def family(request):
    """The name of a family, and its tokenizer."""
    return request.param, MADE[request.param]()


def of_families(*first):
    """Parametrizes a test by the families, of which `make test` exports only the first."""
    return pytest.mark.parametrize("family", full_but(MADE, *first), indirect=True, scope="module")


def model_of(family, kind, sequence_length=24, **arguments):
    """A model with weights so large that every token influences the outputs."""
    name, tokenizer = family
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 48, "pad_id": tokenizer.pad_id}
    config = CONFIGS[name.split()[0]]
    config = config.__class__(**{**vars(config), **fields})
    model = kind(encoder_of(config)(config), tokenizer=tokenizer, sequence_length=sequence_length, **arguments)
    chance = np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(chance.normal(size=weight.shape, scale=0.4))
    return model


ALONE = """
import json, sys
import tensorflow as tf, tensorflow_text
texts = json.loads(sys.argv[2])
outputs = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](text=tf.constant(texts))
assert not {"keras_bert_impl", "sentencepiece"} & set(sys.modules)
print(json.dumps(outputs["logits"].numpy().tolist()))
"""


@of_families("XLMRoberta")
@pytest.mark.filterwarnings("ignore:.* were truncated to that length")
def test_texts_and_pairs_are_cut_and_classified_as_by_the_model(family, ask):
    model = model_of(family, kbi.TextClassifier, num_classes=3)
    found = ask(model, text=TEXTS)["logits"]
    np.testing.assert_allclose(found, model.predict(TEXTS, verbose=0), atol=1e-5)
    found = ask(model, "pairs", text=TEXTS, text_pair=PAIRS)["logits"]
    np.testing.assert_allclose(found, model.predict((TEXTS, PAIRS), verbose=0), atol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("family", ["XLMRoberta", "ModernBert"], indirect=True)
@pytest.mark.filterwarnings("ignore:.* were truncated to that length")
def test_a_moved_directory_answers_in_a_process_that_knows_only_tensorflow(family, tmp_path):
    model = model_of(family, kbi.TextClassifier, num_classes=3)
    export_saved_model(model, tmp_path / "served")
    (tmp_path / "served").rename(tmp_path / "moved")
    command = [sys.executable, "-I", "-c", ALONE, tmp_path / "moved", json.dumps(TEXTS)]
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    np.testing.assert_allclose(json.loads(printed), model.predict(TEXTS, verbose=0), atol=1e-5)


@of_families()
def test_masks_are_filled_as_by_the_model(family, ask):
    model, mask = model_of(family, kbi.MaskedLM, sequence_length=48), family[1].mask_texts[0]
    texts = [f"The capital is {mask}.", "[MASK] of [MASK]"]
    found = ask(model, text=texts)
    for row, text in enumerate(texts):
        for place, guesses in enumerate(model.fill_mask(text, top_k=5)):
            assert [token.decode() for token in found["tokens"][row, place]] == [guess.token for guess in guesses]
            np.testing.assert_allclose(
                found["probabilities"][row, place], [guess.probability for guess in guesses], atol=1e-5
            )


@of_families()
def test_words_are_labelled_as_by_the_model(family, ask):
    model = model_of(family, kbi.TokenClassifier, sequence_length=48, num_classes=3, class_names=["O", "B-X", "I-X"])
    texts = [SENTENCES[1], "日本 Café \u200d 2018,"]
    found = ask(model, text=texts)
    for row, text in enumerate(texts):
        labels = [word.label for word in model.tag([text.split()])[0]]
        assert [label.decode() for label in found["labels"][row] if label] == labels


def contexts_with_odd_spaces(count):
    """Sentences whose words are parted by all kinds of white space, accents and characters that are not seen."""
    chance = random.Random(5)
    between = [" ", "  ", " \t", "\n", "\r\n", "\n\n\t ", "\u00a0", "\u2028", " \u200b", "\u0301 ", "\x00", "\x7f "]
    words = " ".join(SENTENCES).split()
    return ["".join(chance.choice(words) + chance.choice(between) for _ in range(2 + row)) for row in range(count)]


@of_families()
@pytest.mark.filterwarnings("ignore:.* were truncated to that length")
def test_answers_are_those_of_the_model_with_their_bytes(family, ask):
    model = model_of(family, kbi.QuestionAnswerer)
    contexts = [SENTENCES[2], "Naïve ''Café''  日本 in 2018, and " * 4, SENTENCES[3] * 3, "   \t\n ", ""]
    contexts += contexts_with_odd_spaces(15)
    asked = ["Who said so?", "What?", "Where is the capital of Switzerland in the rain and on the mat?"]
    questions = [asked[row % 3] for row in range(20)]
    found = ask(model, question=questions, context=contexts)
    for row, (context, (expected,)) in enumerate(zip(contexts, model.answer(questions, contexts), strict=True)):
        assert found["answer"][row].decode() == expected.text
        begin, end = (len(context[:place].encode()) for place in (expected.start, expected.end))
        assert (found["begin"][row], found["end"][row]) == (begin, end)
        np.testing.assert_allclose(found["score"][row], expected.score, atol=1e-4)


@of_families()
@pytest.mark.filterwarnings("ignore:.* were truncated to that length")
def test_endings_are_chosen_and_vectors_made_as_by_the_model(family, ask):
    chooser = model_of(family, kbi.MultipleChoice, sequence_length=48)
    endings = [PAIRS[:2], PAIRS[2:4]]
    found = ask(chooser, text=TEXTS[:2], endings=endings)
    np.testing.assert_allclose(found["logits"], chooser.predict((TEXTS[:2], endings), verbose=0), atol=1e-5)
    embedder = model_of(family, kbi.TextEmbedder, sequence_length=48)
    found = ask(embedder, text=TEXTS)
    np.testing.assert_allclose(found["vector"], embedder.predict(TEXTS, verbose=0), atol=1e-5)
