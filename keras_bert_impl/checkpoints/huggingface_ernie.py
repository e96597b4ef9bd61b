"""ERNIE's tensors as Hugging Face names them: BERT's with another prefix, and the table of tasks."""

from keras_bert_impl.checkpoints import huggingface_bert
from keras_bert_impl.checkpoints.tensor_tables import SAME
from keras_bert_impl.configurations.ernie import ErnieConfig

PREFIX = "ernie."


def _renamed(rows):
    return tuple(
        (path, tuple(PREFIX + name.removeprefix("bert.") if name.startswith("bert.") else name for name in names), form)
        for path, names, form in rows
    )


FAMILY = huggingface_bert.FAMILY._replace(
    config_class=ErnieConfig,
    prefix=PREFIX,
    embedding_rows=(
        *_renamed(huggingface_bert.EMBEDDING_ROWS),
        ("task_embedding/embeddings", ("ernie.embeddings.task_type_embeddings.weight",), SAME),
    ),
    block="ernie.encoder.layer.{}.",
    head_rows=_renamed(huggingface_bert.FAMILY.head_rows),
    redundant=tuple(
        name.replace("bert.", PREFIX) if name.startswith("bert.") else name
        for name in huggingface_bert.FAMILY.redundant
    ),
)
