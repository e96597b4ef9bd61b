import numpy as np
import pytest

from keras_bert_impl.preprocessing.entities import Entity, entities_of, labels_of_spans, runs_of

# The same three entities in four schemes: PER of two words, directly behind it PER of one, at the end LOC of three.
SCHEMES = {
    "IOB1": "I-PER I-PER B-PER O I-LOC I-LOC I-LOC",
    "IOB2": "B-PER I-PER B-PER O B-LOC I-LOC I-LOC",
    "IOBES": "B-PER E-PER S-PER O B-LOC I-LOC E-LOC",
    "BILOU": "B-PER L-PER U-PER O B-LOC I-LOC L-LOC",
}
RUNS = [("PER", 0, 1), ("PER", 2, 2), ("LOC", 4, 6)]
TEXT = "Ada Lovelace Bob saw New York City"
WORDS = np.array([[0, 3], [4, 12], [13, 16], [17, 20], [21, 24], [25, 29], [30, 34]])
SPANS = [(21, 34, "LOC"), (0, 12, "PER"), {"start": 13, "end": 16, "label": "PER"}]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_words_are_joined_as_their_labels_say(scheme):
    labels = SCHEMES[scheme].split()
    assert runs_of(labels, sorted(set(labels))) == RUNS


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "BILOU"])
def test_spans_become_the_labels_that_give_them_back(scheme):
    labels = SCHEMES[scheme].split()
    assert labels_of_spans(0, TEXT, WORDS, SPANS, [*labels, "I-PER"]) == labels


def test_labels_without_prefixes_are_joined_only_beside_o():
    assert runs_of(["PER", "PER", "O", "LOC"], ["O", "PER", "LOC"]) == [("PER", 0, 1), ("LOC", 3, 3)]
    assert runs_of(["NN", "NN", "VB"], ["NN", "VB"]) == [("NN", 0, 0), ("NN", 1, 1), ("VB", 2, 2)]
    assert labels_of_spans(0, TEXT, WORDS, SPANS[:1], ["O", "LOC"]) == [*["O"] * 4, "LOC", "LOC", "LOC"]


def test_entities_of_one_type_need_no_name():
    assert runs_of(["B", "I", "O", "B"], ["O", "B", "I"]) == [("entity", 0, 1), ("entity", 3, 3)]
    assert labels_of_spans(0, TEXT, WORDS, SPANS[1:2], ["O", "B", "I"])[:3] == ["B", "I", "O"]


def test_an_entity_has_its_characters_and_the_mean_score():
    labels = SCHEMES["IOB2"].split()
    found = entities_of(TEXT, WORDS, labels, np.array([0.5, 0.7, 0.9, 1, 0.3, 0.4, 0.8]), [*labels])
    assert found[0] == Entity("Ada Lovelace", "PER", pytest.approx(0.6), 0, 12)
    assert found[2] == Entity("New York City", "LOC", pytest.approx(0.5), 21, 34)


def test_a_word_that_is_marked_in_part_is_labelled_whole():
    assert labels_of_spans(0, TEXT, WORDS, [(14, 15, "PER")], ["O", "B-PER"])[2] == "B-PER"


@pytest.mark.parametrize(
    "spans",
    [
        [(30, 35, "LOC")],
        [(5, 5, "PER")],
        [(12, 13, "PER")],
        [(0, 3, "PER"), (2, 9, "PER")],
    ],
)
def test_spans_that_cannot_be_are_refused_with_their_row(spans):
    with pytest.raises(
        ValueError, match=r"labels\[3\]: the span .* is not within the 34 characters of text 3, contains no word"
    ):
        labels_of_spans(3, TEXT, WORDS, spans, ["O", "B-PER", "I-PER"])
