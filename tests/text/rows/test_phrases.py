import numpy as np
import pytest
from made_text import TOKENIZER as SMALL
from made_text import lists, opened, tokens, write
from six_languages import SENTENCES
from tiers import on, once

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.text.rows.example_files import RecordReader, parse_rows
from keras_bert_impl.text.rows.phrases import MARK, MARKS, PhraseFinder, read_phrases
from keras_bert_impl.text.rows.sentence_ids import document_ids
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS

pytestmark = once

TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *"new york times ##er city the a , square".split()])


def marked(phrases, *sentences, tokenizer=TOKENIZER):
    """The tokens of sentences with "+" before those that go on with a phrase, and how often each phrase was found."""
    ids = document_ids(tokenizer)([sentences])
    finder = PhraseFinder(tokenizer, phrases)
    documents, found = finder.mark(ids._replace(values=ids, lengths=np.array([len(sentences)])))
    texts = [
        " ".join("+" * (index >= MARK) + tokenizer.vocabulary[index & (MARK - 1)] for index in sentence)
        for sentence in lists(documents.values)
    ]
    return texts, dict(found), finder


def test_at_each_place_the_longest_phrase_is_found_and_only_as_whole_words():
    phrases = ["New York", "new york times", "times square", "the", "York City"]
    texts, found, _ = marked(phrases, "the New York Times Square", "a new yorker, new york", "New York City")
    assert texts == ["the new +york +times square", "a new york ##er , new +york", "new +york city"]
    assert found == {1: 1, 0: 2, 3: 1}


def test_pieces_of_a_word_within_a_phrase_go_on_with_it():
    texts, found, _ = marked(["a yorker", "timeser city"], "a Yorker a timeser, timeser city")
    assert texts == ["a +york +##er a times ##er , times +##er +city"] and found == {0: 1, 1: 1}


def test_a_phrase_neither_crosses_sentences_nor_stands_for_unknown_words():
    texts, found, finder = marked(["new york", "new paris", "\u200d"], "the new", "york new paris", "")
    assert texts == ["the new", "york new [UNK]", ""] and found == {}
    assert (finder.unknown, finder.empty) == ([1], [2])


def test_phrases_are_those_of_a_search_at_every_place():
    """Random text of four words, and random phrases of one to five."""
    random = np.random.default_rng(0)
    words = ["new", "york", "times", "timeser"]
    phrases = sorted({" ".join(random.choice(words, random.integers(1, 6))) for _ in range(40)})
    texts, all_expected = random.choice(words, (20, 30)).tolist(), []
    for text in texts:
        expected, place = [], 0
        while place < len(text):
            fits = [size for size in range(1, 6) if " ".join(text[place : place + size]) in phrases]
            size = max(fits, default=1)
            expected += [word.replace("timeser", "times ##er") for word in text[place : place + 1]]
            of_phrase = [
                piece for word in text[place : place + size] for piece in word.replace("eser", "es ##er").split()
            ]
            is_long = len(of_phrase) > 1 and bool(fits)
            expected[-1:] = [of_phrase[0], *(("+" if is_long else "") + piece for piece in of_phrase[1:])]
            place += size
        all_expected.append(" ".join(expected))
    assert marked(phrases, *map(" ".join, texts))[0] == all_expected


def test_a_file_without_phrases_is_refused(tmp_path):
    (tmp_path / "phrases.txt").write_bytes(b"")
    with pytest.raises(ValueError, match="contains no phrases"):
        read_phrases(tmp_path / "phrases.txt")


# Of the first sentence.
WORDS = ["北京", "中国", "首都", "全国", "政治", "文化", "中心"]
CHINESE = WordPieceTokenizer([*SPECIAL_TOKENS, *sorted(set("".join(SENTENCES["zh"])) - {"“", "”"})])


def test_a_list_of_words_marks_chinese():
    texts, found, _ = marked(WORDS, SENTENCES["zh"][0], tokenizer=CHINESE)
    assert texts[0].replace(" ", "") == "北+京是中+国的首+都，也是全+国的政+治和文+化中+心。"  # noqa: RUF001
    assert sum(found.values()) == 7


SHAPE = {"sequence_length": 16, "predictions_per_sequence": 3}


def records_of(path):
    reader = RecordReader(path)
    found = parse_rows(reader.read(10_000))
    reader.close()
    return found


@pytest.mark.parametrize("options", [{}, {"packed": True}, {"pairs": "full_sentences"}, {"pairs": "sentence_order"}])
def test_rows_with_phrases_are_those_without_and_their_marks(tmp_path, options):
    documents = tokens(30)
    with_phrases, found = PhraseFinder(SMALL, ["the cat", "dog ran"]).mark(documents)
    assert len(found) == 2
    write(tmp_path / "plain", documents, SMALL, **SHAPE, **options)
    write(tmp_path / "marked", with_phrases, SMALL, phrases=True, **SHAPE, **options)
    plain, rows = records_of(tmp_path / "plain"), records_of(tmp_path / "marked")
    marks = rows.pop(MARKS)
    assert plain.keys() == rows.keys() and MARKS not in plain
    for name, values in plain.items():
        np.testing.assert_array_equal(rows[name].values, values.values)
        np.testing.assert_array_equal(rows[name].lengths, values.lengths)
    np.testing.assert_array_equal(marks.lengths, rows["input_ids"].lengths)
    words = [SMALL.vocabulary[index] for index in rows["input_ids"].values]
    goes_on = {words[place] for place in np.flatnonzero(marks.values)}
    assert goes_on == {"cat", "ran"}


@pytest.mark.parametrize("packed", [False, True])
def test_rows_without_phrases_are_not_masked_by_phrases(tmp_path, packed):
    write(tmp_path / "rows", tokens(30), SMALL, packed=packed, **SHAPE)
    options = {"batch_size": 4, "masking_unit": "phrase", "packed": packed}
    with pytest.raises(ValueError, match="no phrases to mask"):
        next(iter(opened([tmp_path / "rows"], SMALL, **options, **SHAPE)))


@on("tensorflow")
@pytest.mark.full
def test_rows_without_phrases_are_not_masked_by_phrases_in_tf_data(tmp_path):
    from keras_bert_impl.preprocessing.graphs.tf_data import read_training_data

    write(tmp_path / "rows", tokens(30), SMALL, **SHAPE)
    with pytest.raises(Exception, match="no phrases to mask"):
        next(iter(read_training_data(opened([tmp_path / "rows"], SMALL, batch_size=4, masking_unit="phrase", **SHAPE))))


def test_static_masks_hide_whole_phrases_in_google_s_format(tmp_path):
    with_phrases, _ = PhraseFinder(SMALL, ["the cat", "dog ran"]).mark(tokens(400))
    options = {"static_masks": True, "masking_unit": "phrase"}
    write(tmp_path / "rows", with_phrases, SMALL, phrases=True, **options, **SHAPE)
    rows = records_of(tmp_path / "rows")
    assert MARKS not in rows
    ids = rows["input_ids"].values.reshape(-1, 16).copy()
    row, column = np.nonzero(rows["masked_lm_weights"].values.reshape(-1, 3))
    places = rows["masked_lm_positions"].values.reshape(-1, 3)[row, column]
    ids[row, places] = rows["masked_lm_ids"].values.reshape(-1, 3)[row, column]
    the, cat = SMALL.token_to_id("the"), SMALL.token_to_id("cat")
    is_chosen = np.zeros(ids.shape, bool)
    is_chosen[row, places] = True
    begins = np.argwhere((ids[:, :-1] == the) & (ids[:, 1:] == cat))
    pairs = [(is_chosen[r, c], is_chosen[r, c + 1]) for r, c in begins]
    assert all(one == other for one, other in pairs) and any(one for one, _ in pairs)
