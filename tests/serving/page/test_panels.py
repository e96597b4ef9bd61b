import base64
import types

import numpy as np
import pytest
from conftest import WORDS
from made_exports import make
from served_stand_in import METADATA, StandIn, answer, attend, classify, embed, fill, label_words
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_serving.page.panels import FieldError, marked_parts, panels_of, words_of

pytestmark = on("tensorflow")

# What an export of each kind can be asked.
TASKS_OF_EXPORTS = {
    "BertEncoder": ["compare", "attention"],
    "TextClassifier": ["classify", "attention"],
    "TextRegressor": ["rate", "attention"],
    "TokenClassifier": ["entities", "attention"],
    "QuestionAnswerer": ["answer"],
    "NextSentencePredictor": ["next-sentence"],
    "MultipleChoice": ["choose"],
    "MaskedLM": ["fill-mask", "attention"],
    "TextEmbedder": ["compare", "attention"],
}
INPUTS = {"endings": [["a mat", "a dog"]]}  # the others take one text


def panel(name, task):
    return panels_of(StandIn(name).models[0].signatures)[task]


@pytest.mark.parametrize("kind", full_but(TASKS_OF_EXPORTS, "TextClassifier"))
def test_an_export_of_each_kind_gets_its_panels(kind):
    import tensorflow as tf

    from keras_bert_impl.export import text_signatures

    model = make(kind)
    pieces, signatures = text_signatures.graph_of(kbi.WordPieceTokenizer(WORDS), kind == "QuestionAnswerer"), {}
    for name, (function, specs) in text_signatures.signatures(model, pieces, 12).items():
        outputs = function(*(tf.constant(INPUTS.get(spec.name, ["the [MASK] sat"])) for spec in specs))
        signatures[name] = types.SimpleNamespace(inputs={spec.name for spec in specs}, outputs=outputs)
    assert list(panels_of(signatures)) == TASKS_OF_EXPORTS[kind]


def test_a_model_of_an_unknown_kind_gets_no_panel():
    signatures = StandIn("stars").models[0].signatures
    signatures["serving_default"].outputs["price"] = signatures["serving_default"].outputs.pop("value")
    assert not panels_of(signatures)


def test_an_empty_field_a_text_that_is_too_long_and_a_single_sentence_are_refused():
    with pytest.raises(FieldError, match="Write a question first") as raised:
        panel("passages", "answer").request({"question": " \n", "context": "It rained."})
    assert raised.value.field == "question"
    with pytest.raises(FieldError, match="301 characters"):
        panel("words", "attention").request({"text": "a" * 301})
    with pytest.raises(FieldError, match="2 to 12 lines"):
        panel("vectors", "compare").request({"sentences": "alone\n"})


def test_masks_beyond_what_the_model_reads_are_counted():
    fields = {"text": "[MASK] on [MASK] and [MASK]"}
    shown = panel("words", "fill-mask").answer(fields, fill([fields["text"]]), {})
    assert [guesses[0]["name"] for guesses in shown["masks"]] == ["cat", "mat"]
    assert shown["unread_masks"] == 1


@pytest.mark.parametrize(
    ("metadata", "names"), [(METADATA, ["good", "fair", "bad"]), ({}, ["good", "class 1", "class 0"])]
)
def test_classes_stand_in_the_order_of_their_probabilities_under_the_names_of_the_export(metadata, names):
    shown = panel("moods", "classify").answer({}, classify([""]), metadata)
    assert [row["name"] for row in shown["classes"]] == names and shown["chosen"] == ["good"]


def test_a_second_text_is_asked_with_the_signature_for_pairs():
    assert panel("moods", "classify").request({"text": "a", "text_pair": "b"})[0] == "pairs"
    assert panel("moods", "classify").request({"text": "a", "text_pair": " "}) == ("serving_default", {"text": ["a"]})


def test_several_classes_may_be_chosen_or_none():
    outputs = {"probabilities": np.array([[0.6, 0.1, 0.9]]), "labels": np.array([[b"c", b"a", b""]], object)}
    shown = panel("moods", "classify").answer({}, outputs, {"id2label": {"0": "a", "1": "b", "2": "c"}})
    assert shown["several"] and shown["chosen"] == ["c", "a"]
    outputs["labels"] = np.zeros((1, 0), object)
    assert panel("moods", "classify").answer({}, outputs, {})["chosen"] == []


def test_an_answer_is_cut_out_by_its_bytes():
    context = "Größe 🏔: Es war 1937, im Mai."
    shown = panel("passages", "answer").answer({"context": context}, answer(["?"], [context]), {})
    assert shown == {"before": "Größe 🏔: Es war ", "answer": "1937", "after": ", im Mai."}


def test_words_end_at_punctuation_and_at_every_white_space():
    text = "Don't\tstop,\u3000Zoë\x1f!"
    assert [word for word, _, _ in words_of(text)] == ["Don", "'", "t", "stop", ",", "Zoë", "!"]
    assert all(text[first:last] == word for word, first, last in words_of(text))


def test_words_of_one_entity_are_marked_together_and_the_parts_are_the_text():
    text = "Ada  Lovelace, London"
    outputs = label_words([" ".join(word for word, _, _ in words_of(text))])
    shown = panel("names", "entities").answer({"text": text}, outputs, {})
    assert [(part["text"], part.get("label")) for part in shown["parts"]] == [
        ("Ada  Lovelace", "person"),
        (", ", None),
        ("London", "place"),
    ]


def test_words_that_the_model_did_not_read_are_counted_and_are_no_names():
    text = "London " * 33
    shown = panel("names", "entities").answer({"text": text}, label_words([text]), {})
    assert shown["unread_words"] == 3
    assert sum("label" in part for part in shown["parts"]) == 30


def test_parts_of_speech_mark_every_word():
    words = words_of("dogs ran far")
    parts = marked_parts("dogs ran far", words, ["NOUN", "VERB", ""], [0.9, 0.8, 0.0])
    assert [part.get("label") for part in parts if part["text"].strip()] == ["NOUN", "VERB", None]


def test_cosines_are_those_of_the_vectors_whatever_their_lengths():
    fields = {"sentences": "aaa\n\n bb \n"}
    _, inputs = panel("vectors", "compare").request(fields)
    outputs = embed(inputs["text"])
    shown = panel("vectors", "compare").answer(fields, {"vector": 5 * outputs["vector"]}, {})
    assert shown["sentences"] == inputs["text"] == ["aaa", "bb"]
    first, second = np.array([3, 10, 3]), np.array([2, 10, 0])
    expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert shown["cosines"][0][1] == pytest.approx(expected, abs=1e-4)
    assert shown["cosines"][1][1] == 1


def test_attention_is_sent_in_255ths():
    shown = panel("words", "attention").answer({}, attend(["a b"]), {})
    assert shown["tokens"] == ["[CLS]", "a", "b", "[SEP]"]
    weights = np.frombuffer(base64.b64decode(shown["weights"]), "uint8").reshape(2, 3, 4, 4)
    assert weights[1, 2, 3].tolist() == [0, 191, 0, 64]
