"""Numbers out of their range, and options that would give something else than they say, are refused in one line."""

import dataclasses
import importlib
import math
import typing

import pytest
from tiers import once

from keras_bert_training.cli import COMMANDS
from keras_bert_training.options.convert import ConvertConfig
from keras_bert_training.options.export import ExportConfig
from keras_bert_training.options.rules import ABSENT, GIVEN, OF_DEVICES, RANGES, RULES, Range, check_options, default_of
from keras_bert_training.runs import check_run, parse

pytestmark = once


def numeric_options():
    """(command, option) of each option that takes a number, or several."""
    for name, command in COMMANDS.items():
        kind = getattr(
            importlib.import_module(f"keras_bert_training.options.{name.replace('-', '_')}"), command.configuration
        )
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


def broken(rule, kind):
    """A configuration that has the option of a rule and nothing of what it needs."""
    hints = typing.get_type_hints(kind)
    needed = {field.name: "somewhere" for field in dataclasses.fields(kind) if field.default is field.default_factory}
    config = kind(**needed)
    set_other(config, rule.option, rule.values, hints)
    if rule.wanted == ABSENT:
        set_other(config, rule.other, (), hints)
    elif rule.wanted != GIVEN:
        set_other(config, rule.other, [v for v in typing.get_args(hints[rule.other]) if v not in rule.wanted], hints)
    return config


def set_other(config, option, values, hints):
    """Gives an option one of the values, or one that is not its default."""
    usual = default_of(config, option)
    if not values:
        literal = [value for value in typing.get_args(hints[option]) if isinstance(value, str) and value != usual]
        values = literal or [{bool: True, int: 7, float: 0.5, str: "one", list: [1], type(None): 7}[type(usual)]]
    object.__setattr__(config, option, values[0])


KINDS = {kind.__name__: kind for _, kind, _ in numeric_options()} | {
    "ConvertConfig": ConvertConfig
}  # which has no numbers
RULE_CASES = [(KINDS[name], rule) for name, rules in RULES.items() for rule in rules]
RULE_CASES += [(KINDS["PretrainConfig"], rule) for rule in OF_DEVICES]


@pytest.mark.parametrize(
    ("kind", "rule"),
    RULE_CASES,
    ids=[f"{kind.__name__}-{rule.option}-{number}" for number, (kind, rule) in enumerate(RULE_CASES)],
)
def test_an_option_without_what_it_needs_is_refused_in_one_line(kind, rule):
    config = broken(rule, kind)
    assert rule.is_broken(config)
    with pytest.raises(ValueError, match=rf"^--{rule.option} .*\.$"):
        check_options(config)
    if rule.wanted == GIVEN:
        set_other(config, rule.other, (), typing.get_type_hints(kind))
    else:
        object.__setattr__(
            config, rule.other, default_of(config, rule.other) if rule.wanted == ABSENT else rule.wanted[0]
        )
    assert not rule.is_broken(config)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_defaults_keep_every_rule(kind):
    needed = {field.name: "somewhere" for field in dataclasses.fields(kind) if field.default is field.default_factory}
    check_options(kind(**needed))


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
