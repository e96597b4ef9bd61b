"""`keras-bert predict`: each kind of input, each kind of answer."""

import csv
import io
import json
import sys

import keras
import numpy as np
import pytest
from conftest import WORDS

import keras_bert_impl as kbi
from keras_bert_impl.encoders.keras_methods import AdaptedModel
from keras_bert_training.commands import predict
from keras_bert_training.commands.predict import PredictConfig, parts_of

TEXTS = ["the cat sat", "a dog ran in red rain", "", "is it bad ?", "mats"]
CONTEXT = "the cat sat on a mat in rain . the red dog ran . " * 3


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(3)
    sizes = {"hidden_size": 15, "num_layers": 1, "num_heads": 3, "intermediate_size": 21, "max_length": 30}
    return kbi.BertEncoder(kbi.BertConfig(len(WORDS), **sizes, initializer_range=0.7))


@pytest.fixture
def asked(encoder, tmp_path, monkeypatch):
    """Function from a model's class, arguments, an input and options to what `predict` wrote, and the model."""

    def ask(kind, arguments, content, name="-", read=True, **options):
        model = kind(encoder, tokenizer=kbi.WordPieceTokenizer(WORDS), **arguments)
        model.save_pretrained(tmp_path / "model")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode()), "utf-8"))
        if name != "-":
            name = tmp_path / name
            name.write_text(content, encoding="utf-8")
        options = {"output": str(tmp_path / "answers.jsonl"), **options}
        predict.run(PredictConfig(str(tmp_path / "model"), str(name), **options))
        with open(options["output"], encoding="utf-8", newline="") as written:
            rows = csv.DictReader(written) if options["output"].endswith("csv") else map(json.loads, written)
            return list(rows), model

    return ask


def table(rows, name):
    """Rows as the content of a file of this name."""
    if name.endswith(".jsonl"):
        return "\n".join(map(json.dumps, rows))
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), dialect="excel-tab" if name.endswith(".tsv") else "excel")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def test_lines_of_standard_input_are_classified_in_their_order(asked):
    names = {"num_classes": 3, "class_names": ["x", "y", "z"]}
    rows, model = asked(kbi.TextClassifier, names, "\n".join(TEXTS) + "\n", batch_size=2)
    expected = model.classify(TEXTS)
    assert [row["text"] for row in rows] == TEXTS
    assert [row["predicted"] for row in rows] == [labels[0].label for labels in expected]
    shares = [labels[0].probability for labels in expected]
    np.testing.assert_allclose([row["probability"] for row in rows], shares, atol=1e-5)


@pytest.mark.parametrize("name", ["new.csv", "new.jsonl"])
def test_tables_keep_their_columns_and_may_hold_pairs(asked, name):
    content = [{"key": str(n), "first": text, "second": "a dog"} for n, text in enumerate(TEXTS)]
    options = {"text_column": "first", "pair_column": "second", "top_k": 9}
    rows, model = asked(kbi.TextClassifier, {"num_classes": 3}, table(content, name), name, **options)
    assert [{key: row[key] for key in content[0]} for row in rows] == content
    expected = model.classify((TEXTS, ["a dog"] * 5), top_k=None)
    found = [[candidate["predicted"] for candidate in row["candidates"]] for row in rows]
    assert found == [[label.label for label in labels] for labels in expected]


def test_several_classes_of_a_text_are_those_of_more_than_a_half(asked):
    arguments = {"num_classes": 3, "class_names": ["x", "y", "z"], "multi_label": True}
    rows, model = asked(kbi.TextClassifier, arguments, "\n".join(TEXTS))
    found = model.classify(TEXTS, top_k=None)
    assert [row["predicted"] for row in rows] == [[name for name, share in one if share > 0.5] for one in found]
    assert len({len(row["predicted"]) for row in rows}) > 1 or 0 < len(rows[0]["predicted"]) < 3


def test_answers_are_written_as_csv_with_lists_in_json(asked, tmp_path):
    names = {"num_classes": 2, "class_names": ["O", "A"]}
    rows, model = asked(kbi.TokenClassifier, names, "\n".join(TEXTS), output=str(tmp_path / "o.csv"))
    assert list(rows[0]) == ["text", "entities"]
    expected = [[entity.text for entity in entities] for entities in model.tag(TEXTS)]
    assert [[entity["text"] for entity in json.loads(row["entities"])] for row in rows] == expected


@pytest.mark.parametrize("content", ["the O\ncats A\n\nred A\n", "the\ncats\n\nred\n"], ids=["labels", "words"])
def test_words_of_conll_files_get_a_label_each(asked, content):
    rows, model = asked(kbi.TokenClassifier, {"num_classes": 2, "class_names": ["O", "A"]}, content, "new.conll")
    assert [row["words"] for row in rows] == [["the", "cats"], ["red"]]
    assert [row.get("labels") for row in rows] == ([["O", "A"], ["A"]] if "O" in content else [None, None])
    expected = model.tag([["the", "cats"], ["red"]])
    assert [row["predicted"] for row in rows] == [[label.label for label in labels] for labels in expected]


def test_questions_of_a_squad_file_and_of_a_table_are_answered(asked):
    questions = [{"id": f"q{n}", "question": text} for n, text in enumerate(["is it bad", "the dog ?"])]
    squad = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": questions}]}]}
    rows, model = asked(kbi.QuestionAnswerer, {}, json.dumps(squad), "new.json", top_k=2)
    assert [(row["id"], row["question"]) for row in rows] == [tuple(one.values()) for one in questions]
    expected = model.answer(["is it bad", "the dog ?"], [CONTEXT] * 2, top_k=2)
    assert [[one["answer"] for one in row["candidates"]] for row in rows] == [[a.text for a in one] for one in expected]
    assert [(row["answer"], row["start"]) for row in rows] == [(one[0].text, one[0].start) for one in expected]
    content = table([{**one, "context": CONTEXT} for one in questions], "new.jsonl")
    again, model = asked(kbi.QuestionAnswerer, {}, content, "new.jsonl")
    (first, second) = model.answer(["is it bad", "the dog ?"], [CONTEXT] * 2)
    assert [row["answer"] for row in again] == [first[0].text, second[0].text]
    assert "context" not in rows[0] and again[0]["context"] == CONTEXT


PAIR, ENDINGS = {"text": "the cat", "text_pair": "sat"}, ["sat", "in rain"]


@pytest.mark.parametrize(
    ("kind", "content", "name", "answer"),
    [
        (kbi.TextRegressor, {"text": "the cat"}, "predicted", lambda m: m.predict(["the cat"], verbose=0)[0, 0]),
        (kbi.NextSentencePredictor, PAIR, "probability", lambda m: m.follows("the cat", "sat")),
        (
            kbi.MultipleChoice,
            {"text": "the cat", "endings": ENDINGS},
            "probabilities",
            lambda m: m.choose("the cat", ENDINGS).probabilities,
        ),
        (kbi.TextEmbedder, PAIR, "vector", lambda m: m.embed("the cat")),  # it takes one text
    ],
)
def test_each_kind_of_model_gives_its_answer(asked, kind, content, name, answer):
    (row,), model = asked(kind, {}, json.dumps(content), "new.jsonl")
    np.testing.assert_allclose(row[name], answer(model), atol=1e-5)


def test_texts_that_are_cut_are_counted_over_all_parts(asked, capsys):
    asked(kbi.TextClassifier, {"num_classes": 2}, "\n".join(["the cat " * 20, "a"] * 8), batch_size=2)
    assert "8 texts had more than 30 tokens and were truncated" in capsys.readouterr().err


def test_malformed_rows_stop_or_are_skipped_and_counted(asked, capsys):
    lines = ['{"text": "a"}', "{", '{"words": "a"}', '{"text": 5}', '{"text": "b", "text_pair": "c"}', '{"text": "b"}']
    rows, _ = asked(kbi.TextClassifier, {"num_classes": 2}, "\n".join(lines), "new.jsonl", bad_rows="skip")
    assert [row["text"] for row in rows] == ["a", "b"]
    told = capsys.readouterr().err
    for line, what in ((2, "not valid JSON"), (3, "no column 'text', found words"), (4, "text is not a string")):
        assert f"new.jsonl line {line}: {what}" in told
    assert "only some rows have 'text_pair'" in told and "2 examples" in told and "4 skipped" in told
    with pytest.raises(ValueError, match=r"new.jsonl line 2: not valid JSON"):
        asked(kbi.TextClassifier, {"num_classes": 2}, "\n".join(lines), "new.jsonl")


def test_masks_are_filled_with_as_many_texts_at_once_as_asked(asked, monkeypatch):
    rows_at_once, predict = [], AdaptedModel.predict

    def watched(model, rows, batch_size=None, *others, **options):
        rows_at_once.append(batch_size)
        return predict(model, rows, batch_size, *others, **options)

    monkeypatch.setattr(AdaptedModel, "predict", watched)
    (row, _), model = asked(kbi.MaskedLM, {}, "the [MASK] sat on [MASK]\na [MASK] ran\n", batch_size=1, top_k=2)
    assert set(rows_at_once) == {1}
    found = [[guess["token"] for guess in guesses] for guesses in row["masks"]]
    assert found == [[guess.token for guess in guesses] for guesses in model.fill_mask(row["text"], top_k=2)]


def test_the_first_part_is_one_batch_and_later_ones_grow():
    assert [len(part) for part in parts_of(iter(range(31)), 2)] == [2, 4, 8, 16, 1]


def test_a_misspelt_column_is_an_error_and_not_a_missing_second_text(asked):
    content = table([{"text": text, "second": "a dog"} for text in TEXTS], "new.csv")
    with pytest.raises(ValueError, match="no column 'secnd'"):
        asked(kbi.TextClassifier, {"num_classes": 3}, content, "new.csv", pair_column="secnd")


@pytest.mark.parametrize("link", [False, True])
def test_the_input_is_refused_as_output_and_stays_as_it_was(asked, tmp_path, link):
    content, output = table([{"text": text} for text in TEXTS], "new.jsonl"), tmp_path / "new.jsonl"
    if link:
        (tmp_path / "link.jsonl").symlink_to(output)
    with pytest.raises(ValueError, match="is the --input"):
        asked(kbi.TextEmbedder, {}, content, "new.jsonl", output=str(tmp_path / "link.jsonl") if link else str(output))
    assert output.read_text() == content


def test_an_error_leaves_an_earlier_file_of_answers_as_it_was(asked, tmp_path):
    earlier = tmp_path / "answers.jsonl"
    earlier.write_text("earlier\n")
    with pytest.raises(ValueError, match=r"new.jsonl line 3: not valid JSON"):
        asked(kbi.TextEmbedder, {}, '{"text": "a"}\n{"text": "b"}\n{\n', "new.jsonl", batch_size=1)
    assert earlier.read_text() == "earlier\n"
    assert json.loads((tmp_path / "answers.jsonl.writing").read_text())["text"] == "a"


def test_columns_of_the_users_own_keep_their_values_beside_the_answers(asked, tmp_path, capsys):
    own = {"text": "the cat", "predicted": "by hand", "probability": "mine"}
    names = {"num_classes": 2, "class_names": ["x", "y"]}
    (row,), model = asked(kbi.TextClassifier, names, json.dumps(own), "new.jsonl")
    (label,) = model.classify(["the cat"])[0]
    assert {name: row[name] for name in own} == own
    assert row["predicted_2"] == label.label and abs(row["probability_2"] - label.probability) < 1e-5
    assert "predicted_2, probability_2" in capsys.readouterr().err
    (row,), _ = asked(kbi.TextClassifier, names, (tmp_path / "answers.jsonl").read_text(), "again.jsonl")
    assert list(row) == [*own, "predicted_2", "probability_2", "predicted_3", "probability_3"]
