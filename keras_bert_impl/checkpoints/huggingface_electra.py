"""ELECTRA's tensors as Hugging Face names them."""

from keras_bert_impl.checkpoints import huggingface_bert
from keras_bert_impl.checkpoints.tensor_tables import COMMON_TASKS, SAME, TRANSPOSED, Family
from keras_bert_impl.configurations.electra import ElectraConfig

PREFIX = "electra."
EMBEDDING_ROWS = (
    *(
        (path, tuple(PREFIX + name.removeprefix("bert.") for name in names), transform)
        for path, names, transform in huggingface_bert.EMBEDDING_ROWS
    ),
    ("embeddings_projection/kernel", ("electra.embeddings_project.weight",), TRANSPOSED),
    ("embeddings_projection/bias", ("electra.embeddings_project.bias",), SAME),
)
HEAD_ROWS = (
    ("pooler/kernel", ("sequence_summary.summary.weight",), TRANSPOSED),
    ("pooler/bias", ("sequence_summary.summary.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("generator_predictions.dense.weight",), TRANSPOSED),
    ("masked_lm_head/transform/bias", ("generator_predictions.dense.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("generator_predictions.LayerNorm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("generator_predictions.LayerNorm.bias",), SAME),
    ("masked_lm_head/output_bias", ("generator_lm_head.bias",), SAME),
    ("replaced_token_transform/kernel", ("discriminator_predictions.dense.weight",), TRANSPOSED),
    ("replaced_token_transform/bias", ("discriminator_predictions.dense.bias",), SAME),
    ("replaced_token_head/kernel", ("discriminator_predictions.dense_prediction.weight",), TRANSPOSED),
    ("replaced_token_head/bias", ("discriminator_predictions.dense_prediction.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), TRANSPOSED),
    ("classifier/bias", ("classifier.bias",), SAME),
    ("span_head/kernel", ("qa_outputs.weight",), TRANSPOSED),
    ("span_head/bias", ("qa_outputs.bias",), SAME),
)
FAMILY = Family(
    config_class=ElectraConfig,
    prefix=PREFIX,
    bare_beginnings=("embeddings.", "embeddings_project.", "encoder."),
    embedding_rows=EMBEDDING_ROWS,
    block="electra.encoder.layer.{}.",
    block_rows=huggingface_bert.BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=("generator_lm_head.weight", "electra.embeddings.position_ids", "electra.embeddings.token_type_ids"),
    tasks=(*COMMON_TASKS, "ForPreTraining"),
    dropout_key="classifier_dropout",
    # The dense layer before a classifier has another name in a multiple-choice model than in a text classifier.
    names_by_task={
        "ForSequenceClassification": (
            ("sequence_summary.summary.", "classifier.dense."),
            ("classifier.", "classifier.out_proj."),
        )
    },
)
