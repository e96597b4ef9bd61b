from tiers import once

from keras_bert_impl.preprocessing.labelled_words import IGNORED, rows_of_pieces, split_texts, split_words
from keras_bert_impl.text.tokenizers.rows import BERT_ROWS

pytestmark = once


def test_the_first_piece_of_a_word_stands_for_it(small_tokenizer):
    pieces = rows_of_pieces(split_words(small_tokenizer, ["cats \u200d sat".split()]), BERT_ROWS, sequence_length=9)
    tokens = [small_tokenizer.id_to_token(index) for index in pieces.ids[0]]
    assert tokens == ["cat", "##s", "[UNK]", "sat"]
    assert pieces.words[0].tolist() == [IGNORED, 0, IGNORED, 1, 2, *[IGNORED] * 4]


def test_words_without_room_are_counted(small_tokenizer):
    # [CLS] the cat ##s [SEP]: "sat" and "on" are lost; a word never loses only its end.
    split = split_words(small_tokenizer, ["the cats sat on".split(), "a dogs mats".split(), ["a"], []])
    pieces = rows_of_pieces(split, BERT_ROWS, sequence_length=5)
    assert (pieces.lost, pieces.num_cut) == (2 + 1, 2)
    assert [len(ids) for ids in pieces.ids] == [3, 3, 1, 0]


def test_document_context_stands_around_the_sentence(small_tokenizer):
    split = split_words(small_tokenizer, [words.split() for words in ("the cat", "sat on", "a mat", "dog ran")])
    pieces = rows_of_pieces(split, BERT_ROWS, sequence_length=7, documents=[1, 1, 1, 2])
    words = [[small_tokenizer.id_to_token(index) for index in ids] for ids in pieces.ids]
    assert words == ["the cat sat on a".split(), "cat sat on a mat".split(), "cat sat on a mat".split(), ["dog", "ran"]]
    assert pieces.words[1].tolist() == [IGNORED, IGNORED, 0, 1, IGNORED, IGNORED, IGNORED]
    assert pieces.words[2].tolist()[4:6] == [0, 1]


def test_words_of_a_text_end_at_spaces_and_punctuation_and_say_where_they_stand(small_tokenizer):
    text = "The  cats, unknownword ##s\u200b!"
    (split,) = split_texts(small_tokenizer, [text])
    assert [text[begin:end] for begin, end in split.spans] == ["The", "cats", ",", "unknownword", "#", "#", "s", "!"]
    assert split.word.tolist() == [0, 1, 1, *range(2, 8)]
    (empty,) = split_texts(small_tokenizer, [" \u200b"])
    assert empty.ids == [] and empty.spans.shape == (0, 2)
