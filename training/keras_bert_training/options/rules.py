"""The range of each option that is a number, and which options need or exclude each other, for all commands.

What breaks a rule is refused before anything runs. An option has the same meaning in each command that has it, and
hence one range; what it needs depends on the command. What depends on the data, on a checkpoint or on the machine is
checked where these are read.
"""

import dataclasses
import math
import typing

from keras_bert_serving import LOOPBACK


class Range(typing.NamedTuple):
    """Numbers from `low` to `high`; `above` and `below` leave the end itself out."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def holds(self, number):
        """Whether a number is in the range; NaN and infinity never are."""
        is_high_enough = number > self.low if self.above else number >= self.low
        is_low_enough = number < self.high if self.below else number <= self.high
        return math.isfinite(number) and is_high_enough and is_low_enough

    def __str__(self):
        low = f"{'above' if self.above else 'at least'} {self.low:g}" if self.low > -math.inf else ""
        high = f"{'below' if self.below else 'at most'} {self.high:g}" if self.high < math.inf else ""
        return " and ".join(filter(None, (low, high)))


COUNT, AT_LEAST_0, POSITIVE = Range(1), Range(0), Range(0, above=True)
SHARE, RATE, PART = Range(0, 1), Range(0, 1, below=True), Range(0, 1, above=True)
RANGES = {
    # data
    "duplicates": COUNT,
    "labelled_sentences": AT_LEAST_0,
    "language_exponent": SHARE,
    "long_sequence_length": Range(3),
    "predictions_per_sequence": COUNT,
    "sequence_length": Range(3),  # [CLS], a token, [SEP]
    "short_sequence_probability": SHARE,
    "vocabulary_megabytes": COUNT,
    "vocabulary_size": COUNT,
    # the model
    "frozen_layers": AT_LEAST_0,
    "generator_size": POSITIVE,
    "lora_rank": AT_LEAST_0,
    # masking
    "mask_token_rate": SHARE,
    "masking_rate": Range(0, 1, above=True, below=True),
    "random_token_rate": SHARE,
    # training
    "batch_size": COUNT,
    "beta_2": RATE,
    "class_weights": AT_LEAST_0,
    "cosine_weight": AT_LEAST_0,
    "decay_share": PART,
    "ema_momentum": RATE,
    "encoder_rounds": COUNT,
    "epochs": COUNT,
    "gradient_accumulation_steps": COUNT,
    "hidden_state_weight": AT_LEAST_0,
    "layer_decay": PART,
    "learning_rate": AT_LEAST_0,
    "masked_lm_weight": AT_LEAST_0,
    "max_minutes": POSITIVE,
    "minutes": POSITIVE,
    "patience": COUNT,
    "save_minutes": AT_LEAST_0,
    "search_batch_sizes": COUNT,
    "search_epochs": COUNT,
    "search_learning_rates": POSITIVE,
    "soft_target_weight": AT_LEAST_0,
    "steps": COUNT,
    "steps_per_execution": COUNT,
    "steps_per_round": COUNT,
    "streams": COUNT,
    "temperature": POSITIVE,
    "validation_batches": COUNT,
    "warmup_share": RATE,
    "weight_decay": AT_LEAST_0,
}
ON_SEVERAL = ("mirrored", "data_parallel", "model_parallel")


def refused_options(config):
    """Yields the options of a configuration that do not go with the others, and why. Only what would give a wrong
    number, waste an hour or open a door: an option that merely does nothing is no error."""
    kinds = {kind.__name__ for kind in type(config).__mro__}
    if "PrepareConfig" in kinds:
        if config.phrases and config.tokenizer != "wordpiece":
            yield "phrases", "is for tokenizer wordpiece: leave it out."
        if config.packed and config.static_masks:
            yield "packed", "cannot be combined with static_masks: Google's format has no packed examples."
        if config.masking_unit == "phrase" and not config.phrases:
            yield "masking_unit", "needs phrases to mask: give --phrases."
        if config.masking_unit != "token" and not config.static_masks:
            yield "masking_unit", "is for --static_masks: otherwise give it to keras-bert pretrain."
    if "PretrainConfig" in kinds and config.schedule == "stable" and config.max_minutes is not None:
        yield "schedule", "cannot adjust its end to max_minutes: give --steps."
    if "EvaluateConfig" in kinds and config.null_threshold != 1.0 and config.null_odds is None:
        yield "null_threshold", "is compared with null odds: give --null_odds, or leave it out."
    if "ExportConfig" in kinds and config.format == "saved_model" and config.precision not in ("float32", "bfloat16"):
        yield "precision", "is no precision of a SavedModel: give bfloat16."
    if "ServeConfig" in kinds and config.host_names and config.host not in LOOPBACK:
        yield "host_names", "is for a server that only this machine reaches: leave host or host_names out."
    if "PlanConfig" in kinds and config.shard_optimizer and config.model_devices != 1:
        yield "shard_optimizer", "is for data parallelism: leave model_devices out."
    if hasattr(config, "distribution"):  # it would compute for hours on fewer devices than were meant
        if getattr(config, "model_devices", 1) != 1 and config.distribution != "model_parallel":
            yield "model_devices", "is for --distribution model_parallel: leave it out."
        if getattr(config, "tpu", "local") != "local" and config.distribution != "tpu":
            yield "tpu", "is for --distribution tpu: leave it out."
        if getattr(config, "devices", None) is not None and config.distribution not in ON_SEVERAL:
            yield "devices", f"is for several devices: give --distribution {', '.join(ON_SEVERAL)}."


def default_of(config, option):
    """The default of an option of a configuration, a dataclass."""
    [field] = [field for field in dataclasses.fields(config) if field.name == option]
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def check_options(config):
    """Raises ValueError naming the first option of a configuration, a dataclass, that is outside its range, or lacks
    what it needs."""
    check_ranges(config)
    for option, why in refused_options(config):
        raise ValueError(f"--{option} {getattr(config, option)} {why}")


def check_ranges(config):
    """Raises ValueError naming the first option of a configuration, a dataclass, that is outside its range."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        for number in _numbers_in(value) if field.name in RANGES else ():
            if not RANGES[field.name].holds(number):
                raise ValueError(f"--{field.name} {value} is out of range: expected {RANGES[field.name]}.")


def _numbers_in(value):
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return [number for number in values if isinstance(number, int | float) and not isinstance(number, bool)]
