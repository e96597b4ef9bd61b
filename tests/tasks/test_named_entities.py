import random
import warnings

import numpy as np
import pytest
import seqeval.metrics
from tasks_data import DATA, needs_data

from keras_bert_impl.tasks.conll import IGNORED, Sentence, label_names, pieces_of, read_conll
from keras_bert_impl.tasks.named_entities import TASKS, Examples, entity_scores, word_labels
from keras_bert_impl.tasks.tables import BadRows

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

Peter NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP I-NP I-LOC
"""


def sentence(text, labels=None, document=1):
    words = text.split()
    return Sentence(words, labels.split() if labels else ["O"] * len(words), document)


def read(tmp_path, text, policy="stop"):
    (tmp_path / "train.txt").write_text(text, encoding="utf-8")
    bad_rows = BadRows(policy)
    return read_conll(tmp_path / "train.txt", bad_rows), bad_rows.messages


def test_conll_2003_has_four_columns_and_documents(tmp_path):
    sentences, _ = read(tmp_path, CONLL_2003)
    assert sentences == [
        sentence("EU rejects", "I-ORG O", 1),
        sentence("Peter", "I-PER", 1),
        sentence("BRUSSELS", "I-LOC", 2),
    ]
    assert label_names(sentences) == ["O", "I-LOC", "I-ORG", "I-PER"]


def test_wnut_has_tabs_and_a_tab_between_sentences(tmp_path):
    sentences, _ = read(tmp_path, "Empire State\tB-location\r\nESB\tO\r\n\t\r\nPretty\tO\r\n")
    assert [s.words for s in sentences] == [["Empire State", "ESB"], ["Pretty"]]


def test_a_sentence_with_a_malformed_line_is_left_out(tmp_path):
    sentences, messages = read(tmp_path, "a O\nlone\nb O\n\nc O\n", policy="skip")
    assert [s.words for s in sentences] == [["c"]]
    assert messages == [f"{tmp_path}/train.txt line 2: 1 columns, expected a word and its label: 'lone'"]
    with pytest.raises(ValueError, match=r"line 2.*'lone'"):
        read(tmp_path, "a O\nlone\n")


@needs_data
def test_wnut_17_is_read_whole():
    task, folder = TASKS["wnut17"], DATA / "ner" / "wnut17"
    assert [len(task.read(folder, split, BadRows())) for split in ("train", "dev", "test")] == [3394, 1009, 1287]
    assert len(task.find_class_names(task.read(folder, "train", BadRows()))) == 13


def test_the_first_piece_of_a_word_stands_for_it(small_tokenizer):
    pieces = pieces_of(small_tokenizer, [sentence("cats \u200d sat")], sequence_length=9)
    tokens = [small_tokenizer.id_to_token(index) for index in pieces.ids[0]]
    assert tokens == ["cat", "##s", "[UNK]", "sat"]
    assert pieces.words[0].tolist() == [IGNORED, 0, IGNORED, 1, 2, *[IGNORED] * 4]


def test_words_without_room_are_counted(small_tokenizer):
    # [CLS] the cat ##s [SEP]: "sat" and "on" are lost; a word never loses only its end.
    pieces = pieces_of(small_tokenizer, [sentence("the cats sat on"), sentence("a dogs mats")], sequence_length=5)
    assert pieces.lost == 2 + 1
    assert [len(ids) for ids in pieces.ids] == [3, 3]


def test_document_context_stands_around_the_sentence(small_tokenizer):
    sentences = [sentence("the cat"), sentence("sat on"), sentence("a mat"), sentence("dog ran", document=2)]
    pieces = pieces_of(small_tokenizer, sentences, sequence_length=7, document_context=True)
    words = [[small_tokenizer.id_to_token(index) for index in ids] for ids in pieces.ids]
    assert words == ["the cat sat on a".split(), "cat sat on a mat".split(), "cat sat on a mat".split(), ["dog", "ran"]]
    assert pieces.words[1].tolist() == [IGNORED, IGNORED, 0, 1, IGNORED, IGNORED, IGNORED]
    assert pieces.words[2].tolist()[4:6] == [0, 1]


def test_labels_lie_on_first_pieces_and_weigh_nothing_elsewhere(small_tokenizer):
    examples = Examples([sentence("cats sat", "B-A O"), sentence("on mats", "O B-NEW")])
    rows = TASKS["ner"].featurize(small_tokenizer, examples, ["O", "B-A"], 7)
    assert rows.labels[:, :5].tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    # B-NEW is no class of the training file.
    assert rows.weights[:, :5].tolist() == [[0, 1, 0, 1, 0], [0, 1, 0, 0, 0]]


def test_predictions_are_read_at_first_pieces_and_lost_words_are_o(small_tokenizer):
    examples = Examples([sentence("cats sat on", "B-A O O")])
    rows = TASKS["ner"].featurize(small_tokenizer, examples, ["O", "B-A"], 5)  # "on" is lost
    logits = np.zeros((5, 2))
    logits[[1, 2, 3], 1] = [1.0, -1.0, 1.0]
    assert word_labels(examples, rows, [logits], ["O", "B-A"]) == [["B-A", "B-A", "O"]]
    assert TASKS["ner"].score(examples, rows, [logits], ["O", "B-A"])["words_lost"] == 1


@pytest.mark.parametrize("labels", ["O B-A I-A B-B I-B", "O I-A I-B B-A"], ids=["IOB2", "IOB1"])
def test_entity_figures_are_seqevals_on_random_labels(labels):
    numbers = random.Random(3)
    lengths = [numbers.randrange(9) for _ in range(200)]
    wanted, found = ([numbers.choices(labels.split(), k=n) for n in lengths] for _ in range(2))
    scores = entity_scores(wanted, found)
    for ours, theirs in (("precision", "precision_score"), ("recall", "recall_score"), ("f1", "f1_score")):
        assert scores[ours] == pytest.approx(getattr(seqeval.metrics, theirs)(wanted, found))
    report = seqeval.metrics.classification_report(wanted, found, output_dict=True)
    assert scores["by_type"]["A"]["f1"] == pytest.approx(report["A"]["f1-score"])


def test_entities_by_hand():
    wanted = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
    found = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O"]]
    scores = entity_scores(wanted, found)
    # 3 found, 2 there, 1 right
    assert (scores["precision"], scores["recall"], scores["f1"]) == (pytest.approx(1 / 3), 0.5, pytest.approx(0.4))
    assert scores["by_type"]["PER"]["f1"] == 0.0 and scores["entities"] == 2


@pytest.mark.parametrize(
    ("wanted", "found"),
    [([["O", "O"]], [["O", "O"]]), ([["O"]], [["B-A"]]), ([["B-A"]], [["O"]]), ([[]], [[]])],
)
def test_figures_without_entities_are_zero_and_quiet(wanted, found):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = entity_scores(wanted, found)
    assert (scores["precision"], scores["recall"], scores["f1"]) == (0.0, 0.0, 0.0)


def test_sentences_of_another_length_are_refused():
    with pytest.raises(ValueError, match="Sentence 0 has 2 labels but 1 predictions"):
        entity_scores([["O", "O"]], [["O"]])
