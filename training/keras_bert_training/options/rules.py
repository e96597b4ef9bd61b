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


class Rule(typing.NamedTuple):
    """An option that needs another, or excludes it.

    Fields:
        option: which has another value than its default, or one of `values` if there are any.
        other: the option that must then be as is said in `wanted`: GIVEN, ABSENT, or one of several values.
        why: what is wrong then, and what to do, to be read after the option and its value.
        values: see `option`.
    """

    option: str
    other: str
    wanted: str | tuple
    why: str
    values: tuple = ()

    def is_broken(self, config):
        """Whether a configuration has the option without what it needs."""
        return holds(config, self.option, self.values or GIVEN) and not holds(config, self.other, self.wanted)


GIVEN, ABSENT = "given", "absent"
FORMATS, REDUCED = ("onnx", "openvino", "litert"), ("float16", "int8_weights", "int8")
ON_SEVERAL = ("mirrored", "data_parallel", "model_parallel")
# Only what would give a wrong number, waste an hour or open a door: an option that merely does nothing is no error.
RULES = {
    "PrepareConfig": (
        Rule("phrases", "tokenizer", ("wordpiece",), "is for tokenizer wordpiece: leave it out."),
        Rule("packed", "static_masks", ABSENT, "beside static_masks: Google's format has no packed rows."),
        Rule("masking_unit", "phrases", GIVEN, "needs phrases to mask: give --phrases.", ("phrase",)),
        Rule("masking_unit", "static_masks", GIVEN, "is for --static_masks: otherwise give it to keras-bert pretrain."),
    ),
    "PretrainConfig": (
        Rule("schedule", "max_minutes", ABSENT, "has no end that moves with max_minutes: give --steps.", ("stable",)),
    ),
    "EvaluateConfig": (
        Rule("null_threshold", "null_odds", GIVEN, "is compared with null odds: give --null_odds, or leave it out."),
    ),
    "ExportConfig": (Rule("precision", "format", FORMATS, "is no precision of a SavedModel: give bfloat16.", REDUCED),),
    "ServeConfig": (
        Rule("host_names", "host", LOOPBACK, "beside a host that others reach, by any name: leave one of them out."),
    ),
    "PlanConfig": (
        Rule("shard_optimizer", "model_devices", ABSENT, "is for data parallelism: leave model_devices out."),
    ),
}
# Of every command that trains on several devices: it would compute for hours on fewer than were meant.
OF_DEVICES = (
    Rule("model_devices", "distribution", ("model_parallel",), "is for --distribution model_parallel: leave it out."),
    Rule("tpu", "distribution", ("tpu",), "is for --distribution tpu: leave it out."),
    Rule(
        "devices", "distribution", ON_SEVERAL, f"is for several devices: give --distribution {', '.join(ON_SEVERAL)}."
    ),
)


def holds(config, option, wanted):
    """Whether an option of a configuration is GIVEN, ABSENT, or has one of the values wanted."""
    value = getattr(config, option)
    if wanted in (GIVEN, ABSENT):
        return (value not in (default_of(config, option), None)) is (wanted == GIVEN)
    return value in wanted


def default_of(config, option):
    """The default of an option of a configuration, a dataclass."""
    [field] = [field for field in dataclasses.fields(config) if field.name == option]
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def check_options(config):
    """Raises ValueError naming the first option of a configuration, a dataclass, that is outside its range, or lacks
    what it needs."""
    check_ranges(config)
    names = {kind.__name__ for kind in type(config).__mro__}
    rules = [rule for name, rules in RULES.items() if name in names for rule in rules]
    rules += OF_DEVICES if hasattr(config, "distribution") else ()
    for rule in rules:
        if hasattr(config, rule.option) and rule.is_broken(config):
            raise ValueError(f"--{rule.option} {getattr(config, rule.option)} {rule.why}")


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
