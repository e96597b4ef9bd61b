"""Checkpoints of google-research/bert: bert_config.json, vocab.txt, bert_model.ckpt.* in TensorFlow 1's format.

One table maps our weights to their variables; it is applied in one direction to load and in the other to save. Only
this format needs TensorFlow, and only its checkpoint reader and writer: no graph, no session.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf

from keras_bert_impl.checkpoints import completeness, huggingface, tensor_tables
from keras_bert_impl.checkpoints.atomic_directory import replaced_together
from keras_bert_impl.configurations.family import FUSED, SAME, TRANSPOSED, in_blocks, layer_rows
from keras_bert_impl.configurations.known_families import families_by_model_type
from keras_bert_impl.json_files import read_json
from keras_bert_impl.text.tokenizers import WordPieceTokenizer

CHECKPOINT = "bert_model.ckpt"
FORM = "The format of google-research/bert"
QUERY_KEY_VALUE = ("query", "key", "value")
# Variables of the optimizer that trained the checkpoint, not of the model.
OPTIMIZER_SUFFIXES = ("/adam_m", "/adam_v", "/lamb_m", "/lamb_v")

# Google stores dense kernels as (in, out), as Keras does, but those that are TRANSPOSED here as (out, in).
DENSE, NORM = (("kernel", "kernel"), ("bias", "bias")), (("gamma", "gamma"), ("beta", "beta"))
EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("bert/embeddings/word_embeddings",), SAME),
    ("position_embedding/embeddings", ("bert/embeddings/position_embeddings",), SAME),
    ("segment_embedding/embeddings", ("bert/embeddings/token_type_embeddings",), SAME),
    *layer_rows("embeddings_norm", "bert/embeddings/LayerNorm", NORM),
)
BLOCK_ROWS = (
    ("attention/query_key_value/kernel", tuple(f"attention/self/{n}/kernel" for n in QUERY_KEY_VALUE), FUSED),
    ("attention/query_key_value/bias", tuple(f"attention/self/{n}/bias" for n in QUERY_KEY_VALUE), FUSED),
    *layer_rows("attention/output", "attention/output/dense", DENSE),
    *layer_rows("attention_norm", "attention/output/LayerNorm", NORM),
    *layer_rows("intermediate", "intermediate/dense", DENSE),
    *layer_rows("output", "output/dense", DENSE),
    *layer_rows("output_norm", "output/LayerNorm", NORM),
)
HEAD_ROWS = (
    *layer_rows("pooler", "bert/pooler/dense", DENSE),
    *layer_rows("masked_lm_head/transform", "cls/predictions/transform/dense", DENSE),
    *layer_rows("masked_lm_head/norm", "cls/predictions/transform/LayerNorm", NORM),
    ("masked_lm_head/output_bias", ("cls/predictions/output_bias",), SAME),
    ("next_sentence_head/kernel", ("cls/seq_relationship/output_weights",), TRANSPOSED),
    ("next_sentence_head/bias", ("cls/seq_relationship/output_bias",), SAME),
    # What run_classifier.py adds.
    ("classifier/kernel", ("output_weights",), TRANSPOSED),
    ("classifier/bias", ("output_bias",), SAME),
    # What run_squad.py adds.
    ("span_head/kernel", ("cls/squad/output_weights",), TRANSPOSED),
    ("span_head/bias", ("cls/squad/output_bias",), SAME),
)
# The models that Google's code has, by Hugging Face's names.
TASKS = (
    "Model",
    "ForPreTraining",
    "ForMaskedLM",
    "ForNextSentencePrediction",
    "ForSequenceClassification",
    "ForQuestionAnswering",
)


def table(config):
    """Rows (path of our weight, names of their variables, Transform) for every weight that a BERT can have."""
    blocks = in_blocks(
        BLOCK_ROWS, [(index,) for index in range(config.num_layers)], "block_{}/", "bert/encoder/layer_{}/"
    )
    return [*EMBEDDING_ROWS, *blocks, *HEAD_ROWS]


def open_checkpoint(directory):
    """Opens a directory with bert_config.json, vocab.txt and a TF1 checkpoint; see `tensor_tables.Checkpoint`.

    The checkpoint is bert_model.ckpt, or the only one in the directory. Whether the vocabulary is lower-cased is read
    from tokenizer_config.json, which `save` writes, or else from the vocabulary itself.

    Raises: ValueError if there is no checkpoint, if it is damaged, or if it does not agree with the configuration.
    """
    directory = pathlib.Path(directory)
    path = directory / "bert_config.json"
    bert = families_by_model_type()["bert"].config_class
    config, content = bert.from_google(path), read_json(path)
    source = open_source(directory)
    blocks = {name.split("/")[2] for name in source.shapes if name.startswith("bert/encoder/layer_")}
    tensor_tables.check_depth(source, config, blocks, "bert_config.json")
    tokenizer = None
    if (directory / "vocab.txt").is_file():
        tokenizer = WordPieceTokenizer.from_pretrained(directory)
        tensor_tables.check_tokenizer_rows(tokenizer, config, source)
    names = None
    if "output_weights" in source.shapes:
        names = huggingface.class_names_in(content, source.shapes["output_weights"][0])
    length = huggingface.sequence_length(directory, config)
    found = tensor_tables.Checkpoint(config, table(config), source, lambda: tokenizer, length, names)
    tensor_tables.check_encoder(found, "bert_config.json")
    return found


def open_source(directory):
    """The variables of a TF1 checkpoint as a `tensor_tables.Source`, without those of its optimizer."""
    prefixes = sorted(path.with_suffix("") for path in directory.glob("*.index"))
    found = [prefix for prefix in prefixes if prefix.name == CHECKPOINT] or prefixes
    if len(found) != 1:
        names = ", ".join(prefix.name for prefix in prefixes) or "none"
        raise ValueError(f"{directory}: expected one checkpoint, {CHECKPOINT}.index, found {names}.")
    prefix = str(found[0])
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
        # The numbers are in another file, which is opened now, before a later save can replace it.
        reader.get_tensor(min(shapes, key=lambda name: np.prod(shapes[name])))
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        raise ValueError(f"{prefix} is damaged or incomplete: {error}") from error
    names = [name for name in shapes if not name.endswith(OPTIMIZER_SUFFIXES) and name != "global_step"]
    kept = {name.removeprefix("module/"): name for name in names}  # of TF Hub's modules and old exports

    def read(name):
        return reader.get_tensor(kept[name])

    return tensor_tables.Source(prefix, {name: shapes[stored] for name, stored in kept.items()}, read)


def save(model, directory, tokenizer=None):
    """Writes `model` so that google-research/bert reads it: bert_config.json, bert_model.ckpt.*, vocab.txt.

    Class names and sequence length are written, too; Google's code ignores them, since it takes them from its command
    line. The tokenizer is by default the model's, if it has one.

    Raises: ValueError naming what would be lost: an activation or a norm's epsilon that Google's code does not compute,
        a head that it does not have, weights or settings that it has no place for.
    """
    encoder = getattr(model, "encoder", model)
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    completeness.check_is_bert(encoder, FORM)
    config, rows = encoder.config.to_google(), table(encoder.config)  # first, since it may raise
    if huggingface.task_of(model) not in TASKS:
        raise ValueError(
            f"{FORM} does not support the head of a {type(model).__name__}. Save model.encoder, without the head, or "
            "keep everything with save_pretrained."
        )
    completeness.check_weights(model, rows, FORM)
    if getattr(model, "class_names", None) is not None:
        config["id2label"] = {str(index): str(name) for index, name in enumerate(model.class_names)}
    arrays = tensor_tables.tensors(model.weights, rows)
    names = sorted(arrays)
    with replaced_together(directory, lambda new: ()) as target:
        tf.raw_ops.SaveV2(
            prefix=str(target / CHECKPOINT),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[np.asarray(arrays[name], "float32") for name in names],
        )
        (target / "bert_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        if tokenizer is not None:
            # Also writes tokenizer_config.json, which Google's code ignores, to store whether text is lower-cased.
            tokenizer.save_pretrained(target, getattr(model, "sequence_length", None))
        completeness.check_settings(model, tokenizer, lambda: open_checkpoint(target), FORM)
