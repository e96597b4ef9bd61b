import pytest
from tiers import once

from keras_bert_training.tasks import own_data
from keras_bert_training.tasks.tables import BadRows, read_table
from keras_bert_training.tasks.text_classification import read_examples

pytestmark = once

COLUMNS = {"text": "sentence", "label": "label"}


def cells(path, content, columns=COLUMNS, policy="stop", **arguments):
    path.write_bytes(content.encode("utf-8"))
    bad_rows = BadRows(policy)
    rows = [tuple(row.values()) for _, row in read_table(path, columns, bad_rows, **arguments)]
    return rows, bad_rows.messages


def test_quotation_marks_in_a_tsv_are_text(tmp_path):
    rows, _ = cells(tmp_path / "a.tsv", 'label\tsentence\n1\t" he said\n0\t"no" , she said\n')
    assert rows == [('" he said', "1"), ('"no" , she said', "0")]


def test_a_csv_quotes_cells_and_breaks_lines_within_them(tmp_path):
    rows, _ = cells(tmp_path / "a.csv", 'sentence,label\n"one, ""two""\nthree",1\nfour,0\n')
    assert rows == [('one, "two"\nthree', "1"), ("four", "0")]


def test_a_cell_of_a_csv_may_be_longer_than_pythons_limit(tmp_path):
    longest = "long " * 30_000
    rows, _ = cells(tmp_path / "a.csv", f'sentence,label\n{longest},1\n"{longest}",0\n')
    assert rows == [(longest, "1"), (longest, "0")]


@pytest.mark.parametrize("end", ["", "\n", "\nmore,0\n"])
def test_a_cell_of_a_csv_that_is_never_closed_is_refused(tmp_path, end):
    with pytest.raises(ValueError, match=r"a\.csv line 3: a quotation mark opens a cell that is never closed"):
        cells(tmp_path / "a.csv", f'sentence,label\nfine,1\n"open,1{end}')


def test_line_numbers_of_a_csv_count_lines_not_rows(tmp_path):
    _, messages = cells(tmp_path / "a.csv", 'sentence,label\n"a\nb",1\nlone\nc,1\n', policy="skip")
    assert messages == [f"{tmp_path}/a.csv line 4: 1 columns, expected 2: 'lone'"]


def test_byte_order_mark_carriage_returns_and_line_separators_within_text(tmp_path):
    rows, _ = cells(tmp_path / "a.tsv", "\ufeffsentence\tlabel\r\none\u2028two\x85\t1\r\nthree\t0")
    assert rows == [("one\u2028two\x85", "1"), ("three", "0")]


def test_columns_go_by_number_where_there_is_no_header(tmp_path):
    rows, _ = cells(tmp_path / "a.tsv", "gj04\t1\t\tA cat.\ncj99\t0\t*\tCat a.\n", {"text": 3, "label": 1})
    assert rows == [("A cat.", "1"), ("Cat a.", "0")]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("text\tlabel\na\t1\n", "line 1: no column 'sentence', found text, label"),
        ("sentence\tlabel\na\t1\tx\n", "line 2: 3 columns, expected 2: 'a.*Correct it, or .*--bad_rows skip"),
        ("sentence\tlabel\n", "has no valid line: expected sentence, label"),
        ("", "no column"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, content, complaint):
    with pytest.raises(ValueError, match=f"a.tsv.*{complaint}"):
        cells(tmp_path / "a.tsv", content)


def test_skipped_rows_are_counted_with_their_content(tmp_path):
    rows, messages = cells(tmp_path / "a.jsonl", '{"sentence": "a", "label": 1}\n[]\n{"sentence": 3}\n', policy="skip")
    assert rows == [("a", 1)]
    assert ["line 2" in messages[0], "line 3: sentence is 3" in messages[1]] == [True] * 2 == [True] * len(messages)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv"])
def test_own_examples_read_the_same_from_every_layout(tmp_path, suffix):
    content = {
        ".jsonl": '{"text": "a", "text_pair": "b", "label": 1}\n{"text": "c", "text_pair": "d", "label": "x"}\n',
        ".csv": "label,text,text_pair\n1,a,b\nx,c,d\n",
        ".tsv": "text\ttext_pair\tlabel\na\tb\t1\nc\td\tx\n",
    }
    (tmp_path / f"train{suffix}").write_text(content[suffix])
    assert read_examples(tmp_path / f"train{suffix}") == (["a", "c"], ["b", "d"], ["1", "x"])


def test_a_second_text_that_is_named_must_be_there(tmp_path):
    for split in ("train", "validation"):
        (tmp_path / f"{split}.csv").write_text("text,second,label\na,b,x\nc,d,y\n")
    task = own_data.own_task("text_classification", tmp_path, pair="second")
    assert task.read(tmp_path, "train", BadRows()).pairs == ["b", "d"]
    task = own_data.own_task("text_classification", tmp_path, pair="secnd")
    with pytest.raises(ValueError, match=r"train\.csv line 1: no column 'secnd', found text, second, label"):
        task.read(tmp_path, "train", BadRows())
    assert own_data.own_task("text_classification", tmp_path).read(tmp_path, "train", BadRows()).pairs is None


@pytest.mark.parametrize(("row", "problem"), [("a film,", "the label is empty"), ("  ,good", "the text is empty")])
def test_a_row_without_text_or_label_is_malformed(tmp_path, row, problem):
    (tmp_path / "train.csv").write_text(f"text,label\na fine film,good\n{row}\na dull film,bad\n", encoding="utf-8")
    task = own_data.own_task("text_classification", tmp_path)
    with pytest.raises(ValueError, match=f"train.csv line 3: {problem}"):
        task.read(tmp_path, "train", BadRows("stop"))
    skipping = BadRows("skip")
    assert task.read(tmp_path, "train", skipping).labels == ["good", "bad"]
    assert len(skipping.messages) == 1
    with pytest.raises(ValueError, match=f"train.csv line 3: {problem}"):
        read_examples(tmp_path / "train.csv")
