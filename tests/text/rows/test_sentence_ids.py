import numpy as np
from made_text import TOKENIZER, documents, ids_one_by_one
from made_tokenizers import byte_pair_tokenizer
from tiers import once

from keras_bert_impl.text.rows.sentence_ids import document_ids, sentence_ids

pytestmark = once


def test_words_remembered_give_the_ids_of_the_tokenizer():
    texts = ["", "Käse, Σίσυφος!", *(sentence for document in documents(5) for sentence in document.sentences), " "]
    for one, other in zip(sentence_ids(TOKENIZER)(texts), ids_one_by_one(TOKENIZER, texts), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_sentences_of_a_document_have_the_ids_of_running_text():
    tokenizer, written = byte_pair_tokenizer(), [["The cat sat.", "The dog ran."], ["Paris is good."]]
    values, lengths = document_ids(tokenizer)(written)
    running = [tokenizer.encode(" ".join(document), add_special_tokens=False).ids for document in written]
    assert values.tolist() == running[0] + running[1] and len(lengths) == 3
