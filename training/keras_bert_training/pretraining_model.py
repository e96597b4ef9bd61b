"""The model that a pre-training run trains: its encoder, its objective, and its optimizer."""

import dataclasses

import keras

from keras_bert_impl import checkpoints
from keras_bert_impl.encoders import build_encoder, config_from_name, family_of, family_of_name
from keras_bert_impl.encoders.deberta import DebertaV2Config
from keras_bert_impl.encoders.electra import ElectraConfig
from keras_bert_impl.models import ElectraPretrainer, Pretrainer
from keras_bert_impl.models.electra_pretrainer import check_has_generator
from keras_bert_impl.optimization import (
    BertAdamW,
    BertLamb,
    BertStableAdamW,
    MovableDecay,
    WarmupLinearDecay,
    WarmupStableDecay,
)
from keras_bert_impl.user_warnings import warn_user
from keras_bert_training.options.pretrain import ModelOptions, ObjectiveOptions, OptimizerOptions
from keras_bert_training.options.rules import default_of
from keras_bert_training.pretraining_data import RATES

USUAL_DECAY_SHARE = 0.1
OPTIMIZERS = {"adamw": BertAdamW, "lamb": BertLamb, "stable_adamw": BertStableAdamW}
# Google's code for ELECTRA (pretrain_helpers.py) leaves 15 % of the chosen tokens as they are; its paper masks all.
# From masks alone a small generator learns for long little more than how frequent words are: docs/families.md.
RATES_OF_ELECTRA = {"mask_token_rate": 0.85, "random_token_rate": 0.0}
RATES_OF_DEBERTA = {"mask_token_rate": 1.0, "random_token_rate": 0.0}  # Microsoft's rtd_task.py
# Of each family that learns replaced tokens, what becomes of the chosen tokens.
REPLACED_TOKENS = {ElectraConfig: RATES_OF_ELECTRA, DebertaV2Config: RATES_OF_DEBERTA}
MODEL_OPTIONS = ("num_layers", "hidden_size", "num_heads", "intermediate_size", "initializer_range")


def schedule_of(optimizer, steps, can_move=False):
    """The learning rate schedule of OptimizerOptions for this many steps; whether its end can move later."""
    arguments = optimizer.learning_rate, int(optimizer.warmup_share * steps), steps
    if optimizer.schedule == "stable":
        share = USUAL_DECAY_SHARE if optimizer.decay_share is None else optimizer.decay_share
        return WarmupStableDecay(*arguments, max(1, int(share * steps)))
    return (MovableDecay if can_move else WarmupLinearDecay)(*arguments)


def build_pretrainer(config, data, jit_compile, schedule):
    """A new model, compiled with this learning rate schedule."""
    model, objective = config.part(ModelOptions), config.part(ObjectiveOptions)
    encoder = build_encoder(
        model_config(model, objective.direction, data),
        packed=data.packed,
        rematerialize=config.gradient_checkpointing,
        dtype=keras.dtype_policies.get(config.precision),
    )
    pretrainer = pretrainer_of(model, objective, config.seed, data, encoder)
    options = {"jit_compile": jit_compile, "steps_per_execution": config.steps_per_execution}
    return compiled(pretrainer, config.part(OptimizerOptions), schedule, **options)


def compiled(model, options, schedule, **arguments):
    """The model, compiled with the optimizer that the OptimizerOptions ask for."""
    averaged = {} if options.ema_momentum is None else {"use_ema": True, "ema_momentum": options.ema_momentum}
    optimizer = OPTIMIZERS[options.optimizer](
        schedule,
        weight_decay=options.weight_decay,
        beta_2=options.beta_2,
        gradient_accumulation_steps=options.gradient_accumulation_steps,
        **averaged,
        **({} if options.optimizer == "lamb" else {"moments": options.moments}),
    )
    model.compile(optimizer=optimizer, **arguments)
    return model


def rates_of_family(model):
    """What becomes of the chosen tokens of ModelOptions unless the ObjectiveOptions say so."""
    if model.init is not None:
        family = type(checkpoints.open_checkpoint(model.init).config)
    else:
        family = family_of_name(model.size)
    learns_replaced = family is ElectraConfig or model.objective == "replaced_tokens"
    return REPLACED_TOKENS.get(family, RATES) if learns_replaced else RATES


def pretrainer_of(model, objective, seed, data, encoder):
    """The model with the objective of the encoder's family, of ModelOptions and ObjectiveOptions."""
    if model.objective == "span_boundary":
        check_spans(data)
        if not any(path.startswith("span_boundary_head/") for path, *_ in family_of(encoder.config).head_rows):
            raise ValueError(f"The objective span_boundary is for BERT, not for {encoder.config.family}: leave it out.")
        return Pretrainer(encoder, next_sentence=False, span_boundary=True)
    if isinstance(encoder.config, ElectraConfig) or model.objective == "replaced_tokens":
        check_has_generator(encoder)
        return ElectraPretrainer(encoder, data.tokenizer, model.generator_size)
    return Pretrainer(
        encoder,
        next_sentence=learns_pairs(objective, encoder.config, data),
        enhanced_decoder=model.objective == "enhanced_masked_lm",
        permuted=permuted_options(objective, seed, data, encoder) if model.objective == "permuted_lm" else None,
    )


def permuted_options(objective, seed, data, encoder):
    """What the family's `permuted_states` takes."""
    given = {name: getattr(objective, name) for name in RATES if getattr(objective, name) is not None}
    options = {"mask_id": data.tokenizer.mask_id, "seed": seed, **RATES, **given}
    return {name: options[name] for name in encoder.permuted_arguments}


def learns_pairs(objective, family, data):
    """Whether something is learned from the two segments of the rows.

    Raises: ValueError if that is asked for where it is impossible, or the rows were made for something else.
    """
    is_possible = data.has_pairs and objective.direction == "both" and family.pair_tasks
    if objective.next_sentence and not is_possible:
        raise ValueError(
            f"A {family.family} with direction {objective.direction} cannot learn next sentences from "
            f"{data.directory}, which was made with --pairs {data.pairs}: leave next_sentence out."
        )
    if objective.next_sentence is False or not is_possible:
        return False
    if data.pairs not in family.pair_tasks:
        raise ValueError(
            f"{family.family} learns {' or '.join(family.pair_tasks)} from pairs, but {data.directory} was made with "
            f"--pairs {data.pairs}: prepare the data with --pairs {family.pair_tasks[0]}, or with full_sentences to "
            "learn masked words alone."
        )
    return True


def check_spans(data):
    """Raises ValueError unless the rows are single sequences with masked spans (Joshi et al. 2020, section 3)."""
    if data.has_pairs or data.masked_unit != "span":
        raise ValueError(
            f"span_boundary needs masked spans in single sequences, but {data.directory} has --pairs {data.pairs}, and "
            f"masking_unit is {data.masked_unit}: prepare the data with --pairs doc_sentences, and give --masking_unit "
            "span."
        )


def check_size(model, shape, found):
    """Raises ValueError if another size than that of the checkpoint `init` was asked for. Recipes name its size."""
    differs = [name for name, value in shape.items() if getattr(found, name, value) != value]
    if model.size != default_of(model, "size"):
        wanted = config_from_name(model.size, vocabulary_size=found.vocabulary_size, pad_id=found.pad_id, **shape)
        if (type(wanted), wanted.num_layers, wanted.hidden_size) != (type(found), found.num_layers, found.hidden_size):
            differs.append("size")
    if differs:
        raise ValueError(
            f"The checkpoint {model.init} determines the model, a {found.family} of {found.num_layers} layers of "
            f"width {found.hidden_size}: leave out {', '.join(differs)}."
        )


def model_config(model, direction, data):
    """The configuration of the encoder: that of `size` with the changes asked for, or that of the checkpoint `init`."""
    dropout = {"hidden_dropout_rate": model.dropout_rate, "attention_dropout_rate": model.dropout_rate}
    shape = {name: getattr(model, name) for name in MODEL_OPTIONS if getattr(model, name) is not None}
    if model.init is None:
        # RoBERTa counts positions from the id of its padding token.
        of_data = {"vocabulary_size": data.tokenizer.vocabulary_size, "pad_id": data.tokenizer.pad_id}
        if hasattr(family_of_name(model.size), "sep_id"):  # a Longformer finds the texts of a row by it
            of_data["sep_id"] = data.tokenizer.sep_id
        found = config_from_name(model.size, **of_data, **dropout, **shape)
        if direction == "both":
            return found
        return dataclasses.replace(found, direction=direction)
    checkpoint = checkpoints.open_checkpoint(model.init)
    check_size(model, shape, checkpoint.config)
    if checkpoint.tokenizer is not None and checkpoint.tokenizer.vocabulary != data.tokenizer.vocabulary:
        raise ValueError(
            f"{model.init} was trained with a different vocabulary from the data in {data.directory}: prepare the "
            f"data with --vocab {model.init} and --tokenizer {checkpoint.tokenizer.kind}."
        )
    found = getattr(checkpoint.config, "direction", "both")
    if found != direction:
        raise ValueError(f"The checkpoint {model.init} has the direction {found}, not {direction}.")
    if model.objective == "masked_lm" and all(map(checkpoint.has, ("masked_lm_head/", "decoder_positions/"))):
        warn_user(
            f"{model.init} predicts words with an enhanced mask decoder, which --objective masked_lm does not use, "
            "so its head would get states unlike those it was trained on. Give --objective enhanced_masked_lm to "
            "continue with the decoder."
        )
    if settings := checkpoint.read_pooling():
        warn_user(
            f"{model.init} embeds sentences ({', '.join(f'{name} {one}' for name, one in settings.items())}). "
            "Pre-training continues from its encoder and drops these settings: pass them to TextEmbedder again."
        )
    return dataclasses.replace(checkpoint.config, **dropout)
