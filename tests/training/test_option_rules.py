"""Numbers out of their range, and options that would give something else than they say, are refused in one line."""

import dataclasses
import math
import typing

import pytest
from tiers import once

from keras_bert_training.cli import COMMANDS, options_of
from keras_bert_training.options.convert import ConvertConfig
from keras_bert_training.options.export import ExportConfig
from keras_bert_training.options.rules import RANGES, Range, check_options
from keras_bert_training.runs import check_run, parse

pytestmark = once


def numeric_options():
    """(command, option) of each option that takes a number, or several."""
    for name in COMMANDS:
        kind = options_of(name)
        for option, hint in typing.get_type_hints(kind).items():
            field = next((field for field in dataclasses.fields(kind) if field.name == option), None)
            if field is not None and field.init and takes_numbers(hint):
                yield name, kind, option


def takes_numbers(hint):
    if typing.get_origin(hint) is typing.Literal:
        return False
    return hint in (int, float) or any(takes_numbers(part) for part in typing.get_args(hint))


# Each option with one of its commands: ranges are the same in all of them.
CASES = {option: kind for _, kind, option in numeric_options() if option in RANGES}


def arguments_of(kind, option, value):
    """The command line with this option, and some value for each option that has no default."""
    needed = [field for field in dataclasses.fields(kind) if field.default is field.default_factory]
    given = {field.name: "squad" if field.name == "task" else "somewhere" for field in needed if field.name != option}
    return [f"--{name}={content}" for name, content in {**given, option: value}.items()]


def outside(option):
    """A number below the range of an option, and one above it."""
    found = RANGES[option]
    low = found.low if found.above else found.low - 1
    high = found.high if found.below else found.high + 1
    return [number for number in (low, high) if math.isfinite(number)]


def form_of(option, number):
    number = int(number) if number == int(number) else number
    return {"class_weights": f'{{"a": {number}}}'}.get(
        option, f"[{number}]" if option.startswith("search_") else number
    )


@pytest.mark.parametrize("option", CASES)
def test_a_number_out_of_range_is_refused_in_one_line(option):
    for number in outside(option):
        with pytest.raises(ValueError, match=rf"^--{option} .* is out of range: expected .*\.$"):
            parse(CASES[option], arguments_of(CASES[option], option, form_of(option, number)))


def test_every_range_is_of_an_option():
    assert set(RANGES) == set(CASES)


def test_a_program_is_refused_as_the_command_is(tmp_path):
    from keras_bert_training.finetuning import FinetuneConfig

    config = FinetuneConfig("data", "model", str(tmp_path / "run"), epochs=0)
    with pytest.raises(ValueError, match=r"--epochs 0 is out of range: expected at least 1\."):
        check_run(config.output, config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Range(1), "at least 1"),
        (Range(0, above=True), "above 0"),
        (Range(0, 1, below=True), "at least 0 and below 1"),
        (Range(0, 0.5, above=True), "above 0 and at most 0.5"),
    ],
)
def test_a_range_is_told_in_words_and_holds_its_ends(found, words):
    assert str(found) == words
    if math.isfinite(found.low):
        assert found.holds(found.low) != found.above and not found.holds(found.low - 0.1)
    if math.isfinite(found.high):
        assert found.holds(found.high) != found.below and not found.holds(found.high + 0.1)
    assert found.holds(0.5) == (found.low <= 0.5) and not found.holds(float("nan")) and not found.holds(float("inf"))


# What breaks each rule, and what then keeps it.
BREAKING = [
    ("prepare-data", {"phrases": "some", "tokenizer": "byte_pair"}, {"tokenizer": "wordpiece"}),
    ("prepare-data", {"packed": True, "static_masks": True}, {"static_masks": False}),
    ("prepare-data", {"masking_unit": "phrase", "static_masks": True}, {"phrases": "some"}),
    ("prepare-data", {"masking_unit": "span"}, {"static_masks": True}),
    ("pretrain", {"schedule": "stable", "max_minutes": 7}, {"max_minutes": None}),
    ("evaluate", {"null_threshold": 0.5}, {"null_odds": "some"}),
    ("export", {"precision": "int8"}, {"format": "onnx"}),
    ("serve", {"host_names": ["one"], "host": "0.0.0.0"}, {"host": "localhost"}),
    ("plan-tpu", {"shard_optimizer": True, "model_devices": 2}, {"model_devices": 1}),
    ("pretrain", {"model_devices": 2}, {"distribution": "model_parallel"}),
    ("distill", {"tpu": "one"}, {"distribution": "tpu"}),
    ("finetune", {"devices": 2}, {"distribution": "mirrored"}),
]


def configured(kind, options):
    needed = {field.name: "somewhere" for field in dataclasses.fields(kind) if field.default is field.default_factory}
    return kind(**needed | options)


def test_an_option_without_what_it_needs_is_refused_in_one_line():
    for command, options, remedy in BREAKING:
        kind = options_of(command)
        with pytest.raises(ValueError, match=rf"^--{next(iter(options))} .*\.$"):
            check_options(configured(kind, options))
        check_options(configured(kind, options | remedy))


KINDS = {kind.__name__: kind for _, kind, _ in numeric_options()} | {
    "ConvertConfig": ConvertConfig
}  # which has no numbers


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_defaults_keep_every_rule(kind):
    check_options(configured(kind, {}))


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--max_seq_length", "9"], "unrecognized arguments: --max_seq_length 9. Did you mean --sequence_length?"),
        (["--precisoin", "int8"], "unrecognized arguments: --precisoin int8. Did you mean --precision?"),
    ],
)
def test_a_misspelt_word_is_answered_with_what_was_meant(arguments, meant, capsys):
    with pytest.raises(SystemExit):
        parse(ExportConfig, ["--model=x", "--output=y", *arguments])
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {meant}"
