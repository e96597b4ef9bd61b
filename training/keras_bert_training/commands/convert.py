"""Converts a checkpoint between the formats of Hugging Face, google-research/bert and KerasHub.

    keras-bert convert SOURCE TARGET --to google
    keras-bert convert runs/pretrain my_bert --dtype bfloat16

The source may also be "hf://owner/name" or a published name. Prints what the source holds, reads the target again, and
prints how much the two models' outputs on a sentence differ. What the source's card says of its training stays in the
card of a target in Hugging Face's format.
"""

import dataclasses
import importlib
import pathlib

import numpy as np

from keras_bert_impl import checkpoints, models
from keras_bert_impl.console import say
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.models.pretrained import HEADS_NAMED_CLASSIFIER
from keras_bert_training.options.convert import ConvertConfig as ConvertConfig

SENTENCE = "The quick brown fox jumps over the lazy dog."
ROUNDED = "The figures are those before the weights were rounded to"
# The parts of a checkpoint, and our model that holds them all; the first entry that fits is used.
MODELS = (
    (("masked_lm_head/", "next_sentence_head/"), models.Pretrainer),
    (("masked_lm_head/",), models.MaskedLM),
    (("next_sentence_head/",), models.NextSentencePredictor),
    (("span_head/",), models.QuestionAnswerer),
)
CLASSIFIERS = {
    "ForTokenClassification": models.TokenClassifier,
    "ForMultipleChoice": models.MultipleChoice,
}


def run(config):
    """Converts, and returns the largest difference between an output of the source and of the target."""
    target = pathlib.Path(config.target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists: name another directory.")
    checkpoint = checkpoints.open_checkpoint(config.source)
    describe(checkpoint)
    if config.to != "huggingface" and checkpoint.config.activation == "gelu" and not config.approximate_gelu:
        raise ValueError(
            f"The checkpoint uses exact GELU, but {config.to} only has the approximation: add --approximate_gelu to "
            "accept it."
        )
    exact = checkpoint
    if config.approximate_gelu and checkpoint.config.activation == "gelu":
        checkpoint = checkpoint._replace(config=dataclasses.replace(checkpoint.config, activation="gelu_tanh"))
    encoder_only = config.to == "keras_hub" or (config.to == "google" and is_embedder(checkpoint))
    model = model_of(checkpoint, encoder_only)
    ledger = checkpoints.load(model, checkpoint, report=True)
    if encoder_only and ledger.left_over:
        say(f"{config.to} stores only the encoder: the other weights are not converted.")
    if encoder_only and is_embedder(checkpoint):
        settings = ", ".join(f"{name} {value}" for name, value in checkpoint.read_pooling().items())
        say(f"{config.to} cannot store how texts become vectors: {settings} are not converted.")
    if exact.config.activation != checkpoint.config.activation:
        original = model_of(exact, encoder_only)
        original.set_weights(model.get_weights())  # also those that the checkpoint lacks, which are random
        change = largest_difference(original, model, checkpoint.tokenizer)
        say(f"The approximation of GELU changes outputs on a sentence by at most {change:.1e}.")
    if config.to == "google" and (threshold := getattr(model, "null_threshold", None)) is not None:
        say(
            f"google does not store the no-answer threshold: give run_squad.py --null_score_diff_threshold={threshold}."
        )
        model.null_threshold = None
    save(config, model, target, checkpoint.tokenizer)
    written = checkpoints.open_checkpoint(target)
    again = checkpoints.build_filled(lambda: model_of(written, encoder_only), written)
    difference = largest_difference(model, again, checkpoint.tokenizer)
    say(f"{target} written and read again: outputs on a sentence differ by at most {difference:.1e}.")
    return difference


def save(config, model, target, tokenizer):
    """Writes the model to `target` in the format that the configuration asks for."""
    if config.to != "huggingface":
        importlib.import_module(f"keras_bert_impl.checkpoints.{config.to}").save(model, target, tokenizer)
        return
    checkpoints.huggingface.save(model, target, tokenizer, config.dtype)
    facts = checkpoints.facts_of(checkpoints.local_directory(config.source))
    if config.dtype != "float32" and facts.figures:
        facts = dataclasses.replace(facts, notes=[*facts.notes, f"{ROUNDED} {config.dtype}."])
    checkpoints.write_card(target, facts)


def is_embedder(checkpoint):
    """Whether a checkpoint has no head and specifies how a text becomes a vector."""
    heads = ("masked_lm_head/", "next_sentence_head/", "span_head/", "classifier/")
    return not any(map(checkpoint.has, heads)) and bool(checkpoint.read_pooling())


def describe(checkpoint):
    """Prints what a checkpoint is."""
    config = checkpoint.config
    say(f"{checkpoint.source.path}:")
    say(
        f"  {config.num_layers} layers, width {config.hidden_size}, {config.num_heads} heads, "
        f"{config.vocabulary_size:,} words, {config.max_length} positions, {config.activation}"
    )
    if checkpoint.tokenizer is None:
        say("  no vocabulary")
    else:
        case = "lower-cased" if checkpoint.tokenizer.lowercase else "cased"
        size, kind = checkpoint.tokenizer.vocabulary_size, checkpoint.tokenizer.kind
        say(f"  a {case} {kind} vocabulary of {size:,} words")
    if checkpoint.class_names is not None:
        say(f"  classes: {', '.join(checkpoint.class_names)}")


def model_of(checkpoint, encoder_only):
    """Our model that holds all parts of a checkpoint, still with random weights."""
    encoder = build_encoder(checkpoint.config)
    if encoder_only:
        return encoder
    for parts, kind in MODELS:
        # In some families the tensors of a classifier have the names of those that score a question's answers.
        is_other = kind is models.QuestionAnswerer and checkpoint.task in HEADS_NAMED_CLASSIFIER
        if all(map(checkpoint.has, parts)) and not is_other:
            if kind is models.Pretrainer:
                return kind(encoder)
            return kind(encoder, tokenizer=checkpoint.tokenizer, **checkpoint.arguments_of(kind))
    if is_embedder(checkpoint):
        arguments = {"sequence_length": checkpoint.sequence_length, **checkpoint.arguments_of(models.TextEmbedder)}
        return models.TextEmbedder(encoder, tokenizer=checkpoint.tokenizer, **arguments)
    if not checkpoint.has("classifier/"):
        return encoder
    classes = {}
    if checkpoint.class_names is not None:
        classes = {"num_classes": len(checkpoint.class_names), "class_names": checkpoint.class_names}
    kind = CLASSIFIERS.get(checkpoint.task, models.TextClassifier if classes else models.TextRegressor)
    if kind is models.TextRegressor and checkpoint.read_ranking():
        kind = models.Reranker
    arguments = {"sequence_length": checkpoint.sequence_length, **classes, **checkpoint.arguments_of(kind)}
    return kind(encoder, tokenizer=checkpoint.tokenizer, **arguments)


def largest_difference(one, other, tokenizer):
    """The largest absolute difference of two models' outputs on a sentence, or on arbitrary ids without a tokenizer."""
    config = getattr(one, "encoder", one).config
    ids = tokenizer.encode(SENTENCE).ids if tokenizer is not None else np.arange(1, 12) % config.vocabulary_size
    row = np.array(ids, "int32")[None, : config.max_length]
    inputs = {"token_ids": row, "segment_ids": np.zeros_like(row), "padding_mask": np.ones_like(row)}
    if "mask_positions" in one.input:
        inputs["mask_positions"] = np.array([[1, 2]], "int32")
    if isinstance(one, models.MultipleChoice):
        inputs = {name: array[:, None] for name, array in inputs.items()}
    outputs = [model.predict_on_batch(inputs) for model in (one, other)]
    one, other = ([found] if not isinstance(found, dict) else list(found.values()) for found in outputs)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in zip(one, other, strict=True))
