"""RoBERTa's and XLM-RoBERTa's tensors as Hugging Face names them."""

from keras_bert_impl.checkpoints import huggingface_bert
from keras_bert_impl.checkpoints.tensor_tables import COMMON_TASKS, SAME, TRANSPOSED, Family
from keras_bert_impl.configurations.roberta import RobertaConfig, XLMRobertaConfig

PREFIX = "roberta."
EMBEDDING_ROWS = tuple(
    (path, tuple(PREFIX + name.removeprefix("bert.") for name in names), transform)
    for path, names, transform in huggingface_bert.EMBEDDING_ROWS
)
HEAD_ROWS = (
    ("pooler/kernel", ("roberta.pooler.dense.weight",), TRANSPOSED),
    ("pooler/bias", ("roberta.pooler.dense.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("lm_head.dense.weight",), TRANSPOSED),
    ("masked_lm_head/transform/bias", ("lm_head.dense.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("lm_head.layer_norm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("lm_head.layer_norm.bias",), SAME),
    ("masked_lm_head/output_bias", ("lm_head.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), TRANSPOSED),
    ("classifier/bias", ("classifier.bias",), SAME),
    ("span_head/kernel", ("qa_outputs.weight",), TRANSPOSED),
    ("span_head/bias", ("qa_outputs.bias",), SAME),
)
FAMILY = Family(
    config_class=RobertaConfig,
    prefix=PREFIX,
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=EMBEDDING_ROWS,
    block="roberta.encoder.layer.{}.",
    block_rows=huggingface_bert.BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=(
        "lm_head.decoder.weight",
        "lm_head.decoder.bias",
        "roberta.embeddings.position_ids",
        "roberta.embeddings.token_type_ids",
    ),
    tasks=COMMON_TASKS,
    dropout_key="classifier_dropout",
    # A text classifier has a dense tanh layer of its own in place of the pooler.
    names_by_task={
        "ForSequenceClassification": (
            ("roberta.pooler.dense.", "classifier.dense."),
            ("classifier.", "classifier.out_proj."),
        )
    },
)
XLM_FAMILY = FAMILY._replace(config_class=XLMRobertaConfig)
