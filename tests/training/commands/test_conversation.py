"""Questions that are typed or piped, and their answers."""

import io
import os
import subprocess
import sys

import pytest
from conftest import revealing_config

import keras_bert_impl as kbi
from keras_bert_impl import console
from keras_bert_training.commands import ask, fill_mask
from keras_bert_training.commands.ask import converse
from keras_bert_training.options.ask import AskConfig
from keras_bert_training.options.fill_mask import FillMaskConfig


@pytest.fixture
def typed(monkeypatch):
    """Function that lets somebody type these lines, then Ctrl-D."""

    def type_lines(*lines):
        given = iter(lines)
        monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())

        def read(prompt):
            for line in given:
                return line
            raise EOFError

        monkeypatch.setattr("builtins.input", read)

    return type_lines


@pytest.fixture
def piped(monkeypatch):
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture
def saved(tmp_path, small_tokenizer):
    def save(kind, *arguments, **options):
        encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=32))
        kind(encoder, *arguments, tokenizer=small_tokenizer, **options).save_pretrained(tmp_path)
        return str(tmp_path)

    return save


def test_an_empty_line_asks_nothing_and_a_mistake_ends_nothing(typed, piped, capsys):
    def answer(line):
        if line == "bad":
            raise ValueError("There is no [MASK]\nin it.")
        return line.upper()

    typed("one", "", "  ", "bad", "two")  # and then Ctrl-D
    assert converse("a word", answer) == ["ONE", "error: There is no [MASK] in it.", "TWO"]
    assert capsys.readouterr().out.startswith("  ONE\n")
    piped("one\n\n  \ntwo\n")
    assert converse("a word", str.upper) == ["ONE", "", "", "TWO"]
    assert capsys.readouterr().out == "ONE\n\n\nTWO\n"


def test_an_empty_passage_is_asked_for_again_and_without_one_nothing_is_asked(saved, typed):
    model = saved(kbi.QuestionAnswerer)
    (direct,) = ask.run(AskConfig(model, "the cat", context="the cat sat on a mat"))
    typed("", "the cat sat on a mat", "", "the cat")
    assert ask.run(AskConfig(model)) == [direct]
    typed("")
    assert ask.run(AskConfig(model)) == []


def test_each_piped_line_has_one_line_of_answer_and_a_mistake_fails_at_the_end(piped, capsys):
    def answer(line):
        if line == "bad":
            raise ValueError("nothing")
        return line[::-1]

    piped("ab\nbad\ncd")
    with pytest.raises(ValueError, match="1 of 3 lines could not be answered"):
        converse("> ", answer)
    assert capsys.readouterr().out == "ba\nerror: nothing\ndc\n"


def test_fill_mask_answers_piped_sentences_in_one_line_each(saved, piped, capsys):
    model = saved(kbi.MaskedLM)
    piped("the [MASK] sat\n[MASK] dog [MASK]\n")
    first, second = fill_mask.run(FillMaskConfig(model, top_k=2))
    assert capsys.readouterr().out == f"{first}\n{second}\n"
    best = kbi.MaskedLM.from_pretrained(model).fill_mask("the [MASK] sat", top_k=1)[0][0]
    assert first.startswith(f"{best.token} {best.probability:.1%}   ") and second.count("  |  ") == 1


ASKED = {
    "classify": (kbi.TextClassifier, (2,), "the cat", {}),
    "regress": (kbi.TextRegressor, (), "the cat", {}),
    "label words": (kbi.TokenClassifier, (2,), "the cat sat", {}),
    "answer": (kbi.QuestionAnswerer, (), "the cat", {"context": "the cat sat on a mat"}),
    "choose": (kbi.MultipleChoice, (), "the cat\tsat\tran", {}),
    "follows": (kbi.NextSentencePredictor, (), "the cat\tsat", {}),
    "fill": (kbi.MaskedLM, (), "the [MASK] sat", {}),
    "compare": (kbi.TextEmbedder, (), "the cat\ta dog", {}),
}


@pytest.mark.parametrize("case", ASKED)
def test_every_kind_of_model_is_asked_in_a_line(saved, piped, case, capsys):
    kind, arguments, line, options = ASKED[case]
    model = saved(kind, *arguments)
    (direct,) = ask.run(AskConfig(model, line, **options))
    if case == "classify":
        found = kbi.TextClassifier.from_pretrained(model).classify(line, 2)
        assert direct == "   ".join(f"{name} {share:.1%}" for name, share in found)
    piped(f"{line}\n")
    assert ask.run(AskConfig(model, **options)) == [direct] and "\n" not in direct and direct
    assert capsys.readouterr().out == f"  {direct}\n{direct}\n"


def test_a_question_needs_a_text(saved, piped, tmp_path):
    piped("who\n")
    model = saved(kbi.QuestionAnswerer)
    with pytest.raises(ValueError, match="give it with --context or --context_file"):
        ask.run(AskConfig(model))
    (tmp_path / "passage.txt").write_text("the cat sat")
    assert ask.run(AskConfig(model, "who", context_file=str(tmp_path / "passage.txt")))


def test_too_few_texts_in_a_line_are_told(saved):
    with pytest.raises(ValueError, match="1 text in this line, expected 2, with a tab between"):
        ask.run(AskConfig(saved(kbi.TextEmbedder), "the cat"))


def test_a_file_gets_few_lines_about_what_is_left(monkeypatch, capsys):
    times = iter([0.0, *range(1, 11)])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(times))
    assert list(console.progress(range(10), "reading")) == list(range(10))
    told = [f"  reading: {done} of 10, about {10 - done} s left" for done in (2, 4, 8)]
    assert capsys.readouterr().out.splitlines() == told


def test_what_takes_no_time_is_silent_and_an_unknown_number_is_counted(capsys):
    assert list(console.progress(iter(range(1000)), "reading")) == list(range(1000))
    assert capsys.readouterr().out == ""
    assert console.progress_line(3, None, 120.0) == "3 in 2 minutes"
    assert [console.in_words(seconds) for seconds in (99, 150, 9000)] == ["99 s", "2 minutes", "2.5 hours"]


def test_a_reader_that_stops_is_no_error():
    """As `keras-bert fill-mask --help | head -1` does, at its worst: nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "keras_bert_training", "fill-mask", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.stderr == "" and done.returncode == 0
