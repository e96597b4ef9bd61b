import numpy as np
from made_text import TOKENIZER, documents

from keras_bert_impl.preprocessing.sentence_ids import ids_without_tensorflow, sentence_ids


def test_both_libraries_give_the_same_ids():
    texts = ["", "Käse, Σίσυφος!", *(sentence for document in documents(5) for sentence in document.sentences), " "]
    for one, other in zip(sentence_ids(TOKENIZER)(texts), ids_without_tensorflow(TOKENIZER, texts), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_no_sentences_have_no_ids():
    for ids_of in sentence_ids(TOKENIZER), lambda sentences: ids_without_tensorflow(TOKENIZER, sentences):
        values, lengths = ids_of([])
        assert values.shape == lengths.shape == (0,)
