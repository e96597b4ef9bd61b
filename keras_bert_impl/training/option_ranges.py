"""The range of each option that is a number, for all commands; a number outside is refused before anything runs.

An option has the same meaning in each command that has it, and hence one range. What an option needs or excludes is
checked by the command itself.
"""

import dataclasses
import math
import typing


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
        return " and ".join(filter(None, (low, high))) or "a finite number"


ANY, COUNT, AT_LEAST_0, POSITIVE = Range(), Range(1), Range(0), Range(0, above=True)
SHARE, RATE, PART = Range(0, 1), Range(0, 1, below=True), Range(0, 1, above=True)
PORT = Range(0, 65535)
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
    "bilstm_units": AT_LEAST_0,
    "dropout_rate": RATE,
    "frozen_layers": AT_LEAST_0,
    "generator_size": POSITIVE,
    "hidden_size": COUNT,
    "initializer_range": POSITIVE,
    "intermediate_size": COUNT,
    "lora_rank": AT_LEAST_0,
    "num_heads": COUNT,
    "num_layers": COUNT,
    # masking
    "mask_token_rate": SHARE,
    "masking_rate": Range(0, 1, above=True, below=True),
    "random_token_rate": SHARE,
    # training
    "batch_size": COUNT,
    "beta_2": RATE,
    "class_weights": AT_LEAST_0,
    "cosine_weight": AT_LEAST_0,
    "ema_momentum": RATE,
    "encoder_rounds": COUNT,
    "epochs": COUNT,
    "gradient_accumulation_steps": COUNT,
    "layer_decay": PART,
    "learning_rate": AT_LEAST_0,
    "masked_lm_weight": AT_LEAST_0,
    "max_minutes": POSITIVE,
    "minutes": POSITIVE,
    "patience": COUNT,
    "pretraining_seeds": COUNT,
    "save_minutes": AT_LEAST_0,
    "search_batch_sizes": COUNT,
    "search_epochs": COUNT,
    "search_learning_rates": POSITIVE,
    "seed": AT_LEAST_0,
    "seeds": COUNT,
    "soft_target_weight": AT_LEAST_0,
    "steps": COUNT,
    "steps_per_execution": COUNT,
    "steps_per_round": COUNT,
    "streams": COUNT,
    "teacher_weight": SHARE,
    "temperature": POSITIVE,
    "validation_batches": COUNT,
    "warmup_share": RATE,
    "weight_decay": AT_LEAST_0,
    # devices and processes
    "devices": COUNT,
    "global_batch": COUNT,
    "model_devices": COUNT,
    "threads": COUNT,
    "workers": COUNT,
    # asking and serving
    "body_seconds": POSITIVE,
    "grpc_port": PORT,
    "k": COUNT,
    "max_batch_bytes": COUNT,
    "max_batch_size": COUNT,
    "max_body_bytes": COUNT,
    "max_queued_rows": COUNT,
    "max_rows": COUNT,
    "max_text_bytes": COUNT,
    "null_threshold": ANY,
    "poll_seconds": AT_LEAST_0,
    "port": PORT,
    "request_seconds": POSITIVE,
    "rounds": COUNT,
    "seconds": POSITIVE,
    "top_k": COUNT,
}


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
