"""Every option of every command that is a number has a range, and what is outside it is refused in one line."""

import dataclasses
import importlib
import math
import typing

import pytest
from tiers import once

from keras_bert_impl.cli import COMMANDS
from keras_bert_impl.training.option_ranges import RANGES, Range
from keras_bert_impl.training.runs import check_run, parse

pytestmark = once


def numeric_options():
    """(command, option) of each option that takes a number, or several."""
    for name, command in COMMANDS.items():
        kind = getattr(
            importlib.import_module(f"keras_bert_impl.options.{name.replace('-', '_')}"), command.configuration
        )
        for option, hint in typing.get_type_hints(kind).items():
            field = next((field for field in dataclasses.fields(kind) if field.name == option), None)
            if field is not None and field.init and takes_numbers(hint):
                yield name, kind, option


def takes_numbers(hint):
    if typing.get_origin(hint) is typing.Literal:
        return False
    return hint in (int, float) or any(takes_numbers(part) for part in typing.get_args(hint))


CASES = list(numeric_options())


def arguments_of(kind, option, value):
    """The command line with this option, and some value for each option that has no default."""
    needed = [field for field in dataclasses.fields(kind) if field.default is field.default_factory]
    given = {field.name: "somewhere" for field in needed if field.name != option}
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


@pytest.mark.parametrize(("command", "kind", "option"), CASES, ids=[f"{case[0]}-{case[2]}" for case in CASES])
def test_a_number_out_of_range_is_refused_in_one_line(command, kind, option):
    assert option in RANGES, f"give --{option} a range in option_ranges.py"
    for number in outside(option):
        with pytest.raises(ValueError, match=rf"^--{option} .* is out of range: expected .*\.$"):
            parse(kind, arguments_of(kind, option, form_of(option, number)))


def test_every_range_is_of_an_option():
    assert set(RANGES) == {option for _, _, option in CASES}


def test_a_program_is_refused_as_the_command_is(tmp_path):
    from keras_bert_impl.training.finetuning import FinetuneConfig

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
        (Range(), "a finite number"),
    ],
)
def test_a_range_is_told_in_words_and_holds_its_ends(found, words):
    assert str(found) == words
    if math.isfinite(found.low):
        assert found.holds(found.low) != found.above and not found.holds(found.low - 0.1)
    if math.isfinite(found.high):
        assert found.holds(found.high) != found.below and not found.holds(found.high + 0.1)
    assert found.holds(0.5) == (found.low <= 0.5) and not found.holds(float("nan")) and not found.holds(float("inf"))
