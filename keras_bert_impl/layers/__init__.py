"""The Keras layers of a BERT, one file each; they use `keras.ops` only."""

from keras_bert_impl.layers.attention_mask import AttentionMask
from keras_bert_impl.layers.dense import Dense
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.frozen_model import FrozenModel
from keras_bert_impl.layers.gather_positions import GatherPositions
from keras_bert_impl.layers.global_tokens import GlobalTokens
from keras_bert_impl.layers.last_token import LastToken
from keras_bert_impl.layers.masked_lm_head import MaskedLMHead
from keras_bert_impl.layers.padding_aware_positions import PaddingAwarePositions
from keras_bert_impl.layers.permuted_rows import PermutedRows
from keras_bert_impl.layers.position_embedding import PositionEmbedding
from keras_bert_impl.layers.prediction_head import PredictionHead
from keras_bert_impl.layers.query_stream import QueryStream
from keras_bert_impl.layers.replace_tokens import ReplaceTokens
from keras_bert_impl.layers.rotary_positions import RotaryPositions
from keras_bert_impl.layers.sample_tokens import SampleTokens
from keras_bert_impl.layers.segment_embedding import SegmentEmbedding
from keras_bert_impl.layers.self_attention import MultiHeadSelfAttention
from keras_bert_impl.layers.span_boundary_head import SpanBoundaryHead
from keras_bert_impl.layers.token_embedding import TokenEmbedding
from keras_bert_impl.layers.transformer_encoder_block import TransformerEncoderBlock

__all__ = [
    "AttentionMask",
    "Dense",
    "Dropout",
    "FrozenModel",
    "GatherPositions",
    "GlobalTokens",
    "LastToken",
    "MaskedLMHead",
    "MultiHeadSelfAttention",
    "PaddingAwarePositions",
    "PermutedRows",
    "PositionEmbedding",
    "PredictionHead",
    "QueryStream",
    "ReplaceTokens",
    "RotaryPositions",
    "SampleTokens",
    "SegmentEmbedding",
    "SpanBoundaryHead",
    "TokenEmbedding",
    "TransformerEncoderBlock",
]
