"""DistilBERT's tensors as Hugging Face names them."""

from keras_bert_impl.checkpoints.tensor_tables import COMMON_TASKS, FUSED, FUSED_TRANSPOSED, SAME, TRANSPOSED, Family
from keras_bert_impl.configurations.distilbert import DistilBertConfig

EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("distilbert.embeddings.word_embeddings.weight",), SAME),
    ("position_embedding/embeddings", ("distilbert.embeddings.position_embeddings.weight",), SAME),
    ("embeddings_norm/gamma", ("distilbert.embeddings.LayerNorm.weight",), SAME),
    ("embeddings_norm/beta", ("distilbert.embeddings.LayerNorm.bias",), SAME),
)
_QUERY_KEY_VALUE = ("q_lin", "k_lin", "v_lin")
BLOCK_ROWS = (
    ("attention/query_key_value/kernel", tuple(f"attention.{n}.weight" for n in _QUERY_KEY_VALUE), FUSED_TRANSPOSED),
    ("attention/query_key_value/bias", tuple(f"attention.{n}.bias" for n in _QUERY_KEY_VALUE), FUSED),
    ("attention/output/kernel", ("attention.out_lin.weight",), TRANSPOSED),
    ("attention/output/bias", ("attention.out_lin.bias",), SAME),
    ("attention_norm/gamma", ("sa_layer_norm.weight",), SAME),
    ("attention_norm/beta", ("sa_layer_norm.bias",), SAME),
    ("intermediate/kernel", ("ffn.lin1.weight",), TRANSPOSED),
    ("intermediate/bias", ("ffn.lin1.bias",), SAME),
    ("output/kernel", ("ffn.lin2.weight",), TRANSPOSED),
    ("output/bias", ("ffn.lin2.bias",), SAME),
    ("output_norm/gamma", ("output_layer_norm.weight",), SAME),
    ("output_norm/beta", ("output_layer_norm.bias",), SAME),
)
HEAD_ROWS = (
    ("pooler/kernel", ("pre_classifier.weight",), TRANSPOSED),
    ("pooler/bias", ("pre_classifier.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("vocab_transform.weight",), TRANSPOSED),
    ("masked_lm_head/transform/bias", ("vocab_transform.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("vocab_layer_norm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("vocab_layer_norm.bias",), SAME),
    ("masked_lm_head/output_bias", ("vocab_projector.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), TRANSPOSED),
    ("classifier/bias", ("classifier.bias",), SAME),
    ("span_head/kernel", ("qa_outputs.weight",), TRANSPOSED),
    ("span_head/bias", ("qa_outputs.bias",), SAME),
)
FAMILY = Family(
    config_class=DistilBertConfig,
    prefix="distilbert.",
    bare_beginnings=("embeddings.", "transformer."),
    embedding_rows=EMBEDDING_ROWS,
    block="distilbert.transformer.layer.{}.",
    block_rows=BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=("vocab_projector.weight", "distilbert.embeddings.position_ids"),
    tasks=COMMON_TASKS,
    dropout_key="seq_classif_dropout",
    token_dropout_key="token_classif_dropout",  # a field of our own: transformers has no other than the encoder's
)
