"""BERT's tensors as Hugging Face names them."""

from keras_bert_impl.checkpoints.tensor_tables import COMMON_TASKS, FUSED, FUSED_TRANSPOSED, SAME, TRANSPOSED, Family
from keras_bert_impl.configurations.bert import BertConfig

EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("bert.embeddings.word_embeddings.weight",), SAME),
    ("position_embedding/embeddings", ("bert.embeddings.position_embeddings.weight",), SAME),
    ("segment_embedding/embeddings", ("bert.embeddings.token_type_embeddings.weight",), SAME),
    ("embeddings_norm/gamma", ("bert.embeddings.LayerNorm.weight",), SAME),
    ("embeddings_norm/beta", ("bert.embeddings.LayerNorm.bias",), SAME),
)
_QUERY_KEY_VALUE = ("query", "key", "value")
BLOCK_ROWS = (
    (
        "attention/query_key_value/kernel",
        tuple(f"attention.self.{n}.weight" for n in _QUERY_KEY_VALUE),
        FUSED_TRANSPOSED,
    ),
    ("attention/query_key_value/bias", tuple(f"attention.self.{n}.bias" for n in _QUERY_KEY_VALUE), FUSED),
    ("attention/output/kernel", ("attention.output.dense.weight",), TRANSPOSED),
    ("attention/output/bias", ("attention.output.dense.bias",), SAME),
    ("attention_norm/gamma", ("attention.output.LayerNorm.weight",), SAME),
    ("attention_norm/beta", ("attention.output.LayerNorm.bias",), SAME),
    ("intermediate/kernel", ("intermediate.dense.weight",), TRANSPOSED),
    ("intermediate/bias", ("intermediate.dense.bias",), SAME),
    ("output/kernel", ("output.dense.weight",), TRANSPOSED),
    ("output/bias", ("output.dense.bias",), SAME),
    ("output_norm/gamma", ("output.LayerNorm.weight",), SAME),
    ("output_norm/beta", ("output.LayerNorm.bias",), SAME),
)
HEAD_ROWS = (
    ("pooler/kernel", ("bert.pooler.dense.weight",), TRANSPOSED),
    ("pooler/bias", ("bert.pooler.dense.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("cls.predictions.transform.dense.weight",), TRANSPOSED),
    ("masked_lm_head/transform/bias", ("cls.predictions.transform.dense.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("cls.predictions.transform.LayerNorm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("cls.predictions.transform.LayerNorm.bias",), SAME),
    ("masked_lm_head/output_bias", ("cls.predictions.bias",), SAME),
    ("next_sentence_head/kernel", ("cls.seq_relationship.weight",), TRANSPOSED),
    ("next_sentence_head/bias", ("cls.seq_relationship.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), TRANSPOSED),
    ("classifier/bias", ("classifier.bias",), SAME),
    ("span_head/kernel", ("qa_outputs.weight",), TRANSPOSED),
    ("span_head/bias", ("qa_outputs.bias",), SAME),
)
# SpanBERT's second head, which transformers does not have: it reports these tensors as unexpected, and leaves them out.
SPAN_BOUNDARY_ROWS = (
    ("span_boundary_head/positions", ("span_boundary_head.positions.weight",), SAME),
    *(
        row
        for number in (1, 2)
        for row in (
            (f"span_boundary_head/transform_{number}/kernel", (f"span_boundary_head.{number}.weight",), TRANSPOSED),
            (f"span_boundary_head/transform_{number}/bias", (f"span_boundary_head.{number}.bias",), SAME),
            (f"span_boundary_head/norm_{number}/gamma", (f"span_boundary_head.{number}.LayerNorm.weight",), SAME),
            (f"span_boundary_head/norm_{number}/beta", (f"span_boundary_head.{number}.LayerNorm.bias",), SAME),
        )
    ),
    ("span_boundary_head/output_bias", ("span_boundary_head.bias",), SAME),
)
FAMILY = Family(
    config_class=BertConfig,
    prefix="bert.",
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=EMBEDDING_ROWS,
    block="bert.encoder.layer.{}.",
    block_rows=BLOCK_ROWS,
    head_rows=HEAD_ROWS + SPAN_BOUNDARY_ROWS,
    # Copies of tied weights, and positions 0, 1, 2, ...
    redundant=(
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "bert.embeddings.position_ids",
        "bert.embeddings.token_type_ids",
    ),
    tasks=(*COMMON_TASKS, "ForPreTraining", "ForNextSentencePrediction"),
    dropout_key="classifier_dropout",
)
