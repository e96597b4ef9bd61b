"""ERNIE: configuration, encoder, and the names of its tensors, which are BERT's with another prefix."""

import dataclasses
import typing

import keras

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig
from keras_bert_impl.configurations.family import SAME
from keras_bert_impl.encoders import bert
from keras_bert_impl.encoders.encoder import FamilyEncoder


@dataclasses.dataclass(frozen=True)
class ErnieConfig(EncoderConfig):
    """Configuration of an ERNIE model. The defaults are ERNIE 1.0 (Sun et al. 2019, section 4.1).

    Arguments and errors are those of BertConfig, without direction, with the defaults in the signature, and:

    Args:
        vocabulary_size, activation, max_length, layer_norm_epsilon (optional): default to 18000, "relu", 513 and 1e-5,
            as in nghuyong/ernie-1.0-base-zh, the published checkpoint.
        has_task_embedding (bool, optional): whether an embedding of the pre-training task is added to the others, as in
            ERNIE 2.0 and 3.0 (`use_task_id` in config.json). Default: False.
        num_tasks (int, optional): number of task embeddings. Task 0 is used, as by default in transformers. Default: 3.
    """

    # From memory of the checkpoint's config.json; the paper gives layers, width and heads alone.
    vocabulary_size: int = 18000
    activation: str = "relu"
    max_length: int = 513
    layer_norm_epsilon: float = 1e-5
    num_segments: int = 2
    has_task_embedding: bool = False
    num_tasks: int = 3

    model_type: typing.ClassVar = "ernie"
    family: typing.ClassVar = "ERNIE"
    # (layers, width, heads). Published is base; the small one has the shape of BERT-small (Turc et al. 2019).
    named_sizes: typing.ClassVar = {"ernie_small": (4, 512, 8), "ernie_base": (12, 768, 12)}
    huggingface_keys: typing.ClassVar = (
        *BERT_KEYS,
        ("has_task_embedding", "use_task_id"),
        ("num_tasks", "task_type_vocab_size"),
    )
    left_out: typing.ClassVar = {"max_position_embeddings": 512, "layer_norm_eps": 1e-12}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ErnieEncoder(FamilyEncoder):
    """Turns token IDs into vectors with ERNIE, as a functional Keras model.

    Its pre-training masks whole phrases and entities (`masking.MaskingRule`), and the published checkpoint has ReLU.
    ERNIE 2.0 and 3.0 add an embedding of the pre-training task; here it is always that of task 0.

    Arguments, inputs, outputs and errors are those of BertEncoder.

    Source: Sun et al. 2019, "ERNIE: Enhanced Representation through Knowledge Integration".
    """

    config_class = ErnieConfig

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.summed_embeddings(inputs, config.hidden_size)
        if config.has_task_embedding:
            # A table of a few rows, like the segments'.
            tasks = parts.segment_embedding(config.hidden_size, config.num_tasks, "task_embedding")
            hidden = hidden + tasks(keras.ops.zeros_like(inputs["segment_ids"]))
        return parts.with_pooled(parts.apply_layers(parts.normalized(hidden), parts.context(inputs)))


FAMILY = bert.FAMILY.renamed("ernie.", encoder_class=ErnieEncoder)
TASK_ROW = ("task_embedding/embeddings", ("ernie.embeddings.task_type_embeddings.weight",), SAME)
FAMILY = FAMILY._replace(embedding_rows=(*FAMILY.embedding_rows, TASK_ROW))
