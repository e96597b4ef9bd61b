"""Learning SentencePiece models."""

import sentencepiece
from made_tokenizers import SENTENCES
from tiers import once

from keras_bert_impl.text.tokenizers import learn_sentence_pieces
from keras_bert_impl.text.tokenizers.sentence_piece_model import CONTROL_TOKENS

pytestmark = once


def test_control_tokens_come_first_and_are_not_found_in_texts():
    model = sentencepiece.SentencePieceProcessor(model_proto=learn_sentence_pieces(SENTENCES * 3, 120))
    assert [model.id_to_piece(index) for index in range(5)] == ["<pad>", "<unk>", *CONTROL_TOKENS]
    assert not set(model.encode("[CLS] [SEP] [MASK] <pad>", out_type=int)) & {0, 2, 3, 4}


def test_the_same_texts_give_the_same_model():
    assert len({learn_sentence_pieces(SENTENCES * 3, 120) for _ in range(3)}) == 1


def test_a_text_longer_than_the_librarys_usual_limit_is_learned_from():
    long = " ".join(["zebra"] * 1500)
    model = sentencepiece.SentencePieceProcessor(model_proto=learn_sentence_pieces([*SENTENCES, long], 150))
    assert "▁zebra" in [model.id_to_piece(index) for index in range(model.get_piece_size())]
