import dataclasses

import numpy as np
import pytest
from tasks_data import DATA, needs_data
from tiers import once

from keras_bert_training.tasks.conll import Sentence, label_names, read_conll
from keras_bert_training.tasks.named_entities import TASKS, LabelledSentences, word_labels
from keras_bert_training.tasks.tables import BadRows

pytestmark = once

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
    first = [sentence("EU rejects", "I-ORG O", 1), sentence("Peter", "I-PER", 1)]
    assert sentences == [*first, sentence("BRUSSELS", "I-LOC", 2)]
    assert label_names(sentences) == ["O", "I-LOC", "I-ORG", "I-PER"]
    assert label_names([sentence("a b c", "10 9 O")]) == ["O", "9", "10"]


def test_wnut_has_tabs_and_a_tab_between_sentences(tmp_path):
    sentences, _ = read(tmp_path, "Empire State\tB-location\r\nESB\tO\r\n\t\r\nPretty\tO\r\n")
    assert [s.words for s in sentences] == [["Empire State", "ESB"], ["Pretty"]]


def test_words_are_parted_by_spaces_and_tabs_alone(tmp_path):
    # U+00A0, U+3000 and U+2003 are white space to Python's split.
    sentences, _ = read(tmp_path, "20\u00a0000 CD O\nab\u3000c  NN   B-X\n\n\u2003d\tO\n")
    assert [s.words for s in sentences] == [["20\u00a0000", "ab\u3000c"], ["\u2003d"]]
    assert sentences[0].labels == ["O", "B-X"]


COMMENTED = {
    "spaces": "# id 7 domain=en\n# text\n#Obama _ _ B-PER\n# _ _ O\n#1 _ _ O\n\n# _ _ O\nthe _ _ O\n",
    "tabs": "# id 7\tdomain=en\n#Obama\tB-PER\n#\tO\n#1\tO\n\n#\tO\nthe\tO\n",
    "ontonotes": "#begin document (a/b); part 000\n#Obama a b B-PER\n# a b O\n#1 a b O\n\n# a b O\nthe a b O\n"
    "\n#end document\n",
}


@pytest.mark.parametrize("layout", COMMENTED)
def test_comments_are_left_out_and_words_that_begin_with_their_sign_are_not(tmp_path, layout):
    sentences, messages = read(tmp_path, COMMENTED[layout], policy="skip")
    assert [s.words for s in sentences] == [["#Obama", "#", "#1"], ["#", "the"]] and not messages
    assert sentences[0].labels == ["B-PER", "O", "O"]


def test_a_sentence_with_a_malformed_line_is_left_out(tmp_path):
    sentences, messages = read(tmp_path, "a O\nlone\nb O\n\nc O\n", policy="skip")
    assert [s.words for s in sentences] == [["c"]]
    assert len(messages) == 1 and "train.txt line 2" in messages[0]
    with pytest.raises(ValueError, match="line 2"):
        read(tmp_path, "a O\nlone\n")


@needs_data
def test_wnut_17_is_read_whole():
    task, folder = TASKS["wnut17"], DATA / "ner" / "wnut17"
    assert [len(task.read(folder, split, BadRows())) for split in ("train", "dev", "test")] == [3394, 1009, 1287]
    assert len(task.find_class_names(task.read(folder, "train", BadRows()))) == 13


def test_labels_lie_on_first_pieces_and_weigh_nothing_elsewhere(small_tokenizer):
    examples = LabelledSentences([sentence("cats sat", "B-A O"), sentence("on mats", "O B-NEW")])
    rows = TASKS["ner"].featurize(small_tokenizer, examples, ["O", "B-A"], 7)
    assert rows.labels[:, :5].tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    # B-NEW is no class of the training file.
    assert rows.weights[:, :5].tolist() == [[0, 1, 0, 1, 0], [0, 1, 0, 0, 0]]


def test_predictions_are_read_at_first_pieces_and_lost_words_are_o(small_tokenizer):
    examples = LabelledSentences([sentence("cats sat on", "B-A O O")])
    rows = TASKS["ner"].featurize(small_tokenizer, examples, ["O", "B-A"], 5)  # "on" is lost
    logits = np.zeros((5, 2))
    logits[[1, 2, 3], 1] = [1.0, -1.0, 1.0]
    assert word_labels(examples, rows, [logits], ["O", "B-A"]) == [["B-A", "B-A", "O"]]
    assert TASKS["ner"].score(examples, rows, [logits], ["O", "B-A"])["words_lost"] == 1


def logits_of(labels, class_names, length):
    """Logits (length, classes) that predict these labels, one per word, from the position after [CLS] on."""
    logits = np.zeros((length, len(class_names)))
    logits[range(1, len(labels) + 1), [class_names.index(label) for label in labels]] = 1.0
    return logits


def test_labels_without_prefixes_are_scored_by_words(small_tokenizer):
    examples = LabelledSentences([sentence("the cat sat", "DT NN VB"), sentence("a dog ran", "DT NN VB")])
    task = TASKS["ner"].suited_to(examples)
    names = task.find_class_names(examples)
    assert (task.main_metric, names) == ("accuracy", ["DT", "NN", "VB"])
    rows = task.featurize(small_tokenizer, examples, names, 7)
    outputs = [logits_of("NN VB DT".split(), names, 7), logits_of("DT NN NN".split(), names, 7)]
    scores = task.score(examples, rows, outputs, names)
    assert scores["accuracy"] == pytest.approx(2 / 6) and "f1" not in scores
    assert dataclasses.replace(TASKS["ner"], main_metric="macro_f1").suited_to(examples).main_metric == "macro_f1"
    assert TASKS["ner"].suited_to(LabelledSentences([sentence("a cat", "O B-A")])).main_metric == "f1"
