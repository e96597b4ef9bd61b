"""ALBERT's tensors as Hugging Face names them."""

from keras_bert_impl.checkpoints import huggingface_bert
from keras_bert_impl.checkpoints.tensor_tables import COMMON_TASKS, FUSED, FUSED_TRANSPOSED, SAME, TRANSPOSED, Family
from keras_bert_impl.configurations.albert import AlbertConfig

PREFIX = "albert."
EMBEDDING_ROWS = (
    *(
        (path, tuple(PREFIX + name.removeprefix("bert.") for name in names), transform)
        for path, names, transform in huggingface_bert.EMBEDDING_ROWS
    ),
    ("embeddings_projection/kernel", ("albert.encoder.embedding_hidden_mapping_in.weight",), TRANSPOSED),
    ("embeddings_projection/bias", ("albert.encoder.embedding_hidden_mapping_in.bias",), SAME),
)
_QUERY_KEY_VALUE = ("query", "key", "value")
BLOCK_ROWS = (
    ("attention/query_key_value/kernel", tuple(f"attention.{n}.weight" for n in _QUERY_KEY_VALUE), FUSED_TRANSPOSED),
    ("attention/query_key_value/bias", tuple(f"attention.{n}.bias" for n in _QUERY_KEY_VALUE), FUSED),
    ("attention/output/kernel", ("attention.dense.weight",), TRANSPOSED),
    ("attention/output/bias", ("attention.dense.bias",), SAME),
    ("attention_norm/gamma", ("attention.LayerNorm.weight",), SAME),
    ("attention_norm/beta", ("attention.LayerNorm.bias",), SAME),
    ("intermediate/kernel", ("ffn.weight",), TRANSPOSED),
    ("intermediate/bias", ("ffn.bias",), SAME),
    ("output/kernel", ("ffn_output.weight",), TRANSPOSED),
    ("output/bias", ("ffn_output.bias",), SAME),
    ("output_norm/gamma", ("full_layer_layer_norm.weight",), SAME),
    ("output_norm/beta", ("full_layer_layer_norm.bias",), SAME),
)
HEAD_ROWS = (
    ("pooler/kernel", ("albert.pooler.weight",), TRANSPOSED),
    ("pooler/bias", ("albert.pooler.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("predictions.dense.weight",), TRANSPOSED),
    ("masked_lm_head/transform/bias", ("predictions.dense.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("predictions.LayerNorm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("predictions.LayerNorm.bias",), SAME),
    ("masked_lm_head/output_bias", ("predictions.bias",), SAME),
    ("next_sentence_head/kernel", ("sop_classifier.classifier.weight",), TRANSPOSED),
    ("next_sentence_head/bias", ("sop_classifier.classifier.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), TRANSPOSED),
    ("classifier/bias", ("classifier.bias",), SAME),
    ("span_head/kernel", ("qa_outputs.weight",), TRANSPOSED),
    ("span_head/bias", ("qa_outputs.bias",), SAME),
)
FAMILY = Family(
    config_class=AlbertConfig,
    prefix=PREFIX,
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=EMBEDDING_ROWS,
    block="albert.encoder.albert_layer_groups.{}.albert_layers.{}.",
    block_rows=BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=(
        "predictions.decoder.weight",
        "predictions.decoder.bias",
        "albert.embeddings.position_ids",
        "albert.embeddings.token_type_ids",
    ),
    tasks=(*COMMON_TASKS, "ForPreTraining"),
    dropout_key="classifier_dropout_prob",
)
