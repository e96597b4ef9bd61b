"""The Keras layers of a BERT, one file each; they use `keras.ops` only."""

from keras_bert_impl.layers.attention_mask import AttentionMask
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.gather_positions import GatherPositions
from keras_bert_impl.layers.masked_lm_head import MaskedLMHead
from keras_bert_impl.layers.position_embedding import PositionEmbedding
from keras_bert_impl.layers.segment_embedding import SegmentEmbedding
from keras_bert_impl.layers.self_attention import MultiHeadSelfAttention
from keras_bert_impl.layers.transformer_encoder_block import TransformerEncoderBlock

__all__ = [
    "AttentionMask",
    "Dropout",
    "GatherPositions",
    "MaskedLMHead",
    "MultiHeadSelfAttention",
    "PositionEmbedding",
    "SegmentEmbedding",
    "TransformerEncoderBlock",
]
