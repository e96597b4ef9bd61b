import gzip
import json
import lzma
import os
import pathlib

import pytest
import zstandard
from tiers import once

from keras_bert_impl.text.corpora import TextCorpus, numbered_lines, text_files

pytestmark = once

LINES = "The first one.\nThe second one.\n\nAnother document.\n\n\nA third one.\n"
RUNNING = "It was a dark night, and the rain\nfell on the window-\nseat. He woke.\n\nThe next paragraph\nis here.\n"
COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def sentences_of(path, **arguments):
    return [document.sentences for document in TextCorpus(path, **arguments)]


def test_blank_lines_divide_documents_of_one_sentence_a_line(tmp_path):
    (tmp_path / "a.txt").write_text(LINES)
    documents = list(TextCorpus(tmp_path / "a.txt"))
    assert [document.name for document in documents] == ["a.txt#1", "a.txt#2", "a.txt#3"]
    assert [document.sentences for document in documents] == [
        ["The first one.", "The second one."],
        ["Another document."],
        ["A third one."],
    ]


def test_running_text_is_unwrapped_and_one_document_a_file(tmp_path):
    (tmp_path / "a.txt").write_text(RUNNING)
    assert sentences_of(tmp_path / "a.txt") == [
        ["It was a dark night, and the rain fell on the window-seat.", "He woke.", "The next paragraph is here."]
    ]


def test_paragraphs_that_were_never_wrapped_are_running_text(tmp_path):
    paragraph = "This is one sentence of the paragraph. This is another one, and a longer one. This is the last."
    (tmp_path / "a.txt").write_text(f"{paragraph}\n{paragraph}\n")
    assert [len(sentences) for sentences in sentences_of(tmp_path / "a.txt")] == [6]


def test_files_that_were_moved_are_the_same_documents(tmp_path):
    (tmp_path / "here" / "novels").mkdir(parents=True)
    (tmp_path / "here" / "novels" / "a.txt").write_text(LINES)
    corpus = TextCorpus(tmp_path / "here")
    documents = list(corpus)
    (tmp_path / "here").rename(tmp_path / "there")
    assert list(corpus.moved(tmp_path / "there")) == documents
    assert (documents[0].name, documents[0].source) == ("novels/a.txt#1", "novels")


def test_wikitext_titles_begin_documents_though_blank_lines_are_missing(tmp_path):
    article = " = {} = \r\n A first sentence . A second one . \r\n = = Part = = \r\n A third sentence . \r\n"
    (tmp_path / "wiki.raw").write_bytes((article.format("One") + article.format("Two")).encode())
    documents = list(TextCorpus(tmp_path / "wiki.raw"))
    assert [document.name for document in documents] == ["wiki.raw#1", "wiki.raw#2"]
    assert documents[1].sentences == [
        "= Two =",
        "A first sentence .",
        "A second one .",
        "= = Part = =",
        "A third sentence .",
    ]


@pytest.mark.parametrize("compression", COMPRESS)
def test_compressed_text_and_rows_read_as_plain_ones(tmp_path, compression):
    rows = "".join(json.dumps({"text": f"Row {number} is here. It ends."}) + "\n" for number in (1, 2))
    (tmp_path / f"a.txt{compression}").write_bytes(COMPRESS[compression](LINES.encode()))
    (tmp_path / f"b.jsonl{compression}").write_bytes(COMPRESS[compression](rows.encode()))
    corpus = TextCorpus(tmp_path)
    assert [document.sentences for document in corpus] == [
        ["The first one.", "The second one."],
        ["Another document."],
        ["A third one."],
        ["Row 1 is here.", "It ends."],
        ["Row 2 is here.", "It ends."],
    ]
    assert corpus.problems == []


@pytest.mark.parametrize("compression", [".gz", ".xz", ".zst"])
def test_truncated_file_is_named_and_the_others_are_read(tmp_path, compression):
    # Numbers that do not repeat keep the compressed file long, so that its half does not end with a whole block.
    text = "\n\n".join(f"Document {index * 7919 % 100_003} ends here." for index in range(20_000))
    packed = COMPRESS[compression](text.encode())
    (tmp_path / f"bad.txt{compression}").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "good.txt").write_text("A sentence.\n")
    corpus = TextCorpus(tmp_path)
    assert list(corpus)[-1].name == "good.txt#1"
    assert [problem.place for problem in corpus.problems] == [str(tmp_path / f"bad.txt{compression}")]
    assert "ended before" in corpus.problems[0].reason
    with pytest.raises(ValueError, match=r"bad\.txt.*ended before"):
        list(TextCorpus(tmp_path, on_error="raise"))


def test_zstandard_frames_after_one_another_are_one_file(tmp_path):
    frames = zstandard.compress(b"One ends.\n") + zstandard.compress(b"Two ends.\n")
    (tmp_path / "a.txt.zst").write_bytes(frames)
    assert sentences_of(tmp_path / "a.txt.zst") == [["One ends.", "Two ends."]]


def test_byte_order_mark_and_carriage_returns_leave_no_trace(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfOne ends.\r\nTwo ends.\r\n\r\nThree ends.\r\n")
    assert sentences_of(tmp_path) == [["One ends.", "Two ends."], ["Three ends."]]


def test_undecodable_text_is_read_up_to_the_damaged_document(tmp_path):
    (tmp_path / "a.txt").write_bytes(LINES.encode() + b"\nLast one.\nCaf\xe9.\n")
    corpus = TextCorpus(tmp_path, text_format="lines")
    assert [document.sentences[0] for document in corpus][-1] == "A third one."
    assert corpus.problems == [(str(tmp_path / "a.txt"), "line 10: byte 0xe9 is not UTF-8; convert the file to UTF-8.")]


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [("a.txt", "A cat sat there.\n", "UTF-16LE"), ("a.jsonl", "Кошка сидела.\n", "UTF-16BE")],
)
def test_utf16_without_a_mark_is_refused_with_its_name(tmp_path, encoding, text, name):
    (tmp_path / name).write_bytes((text * 20).encode(encoding))
    with pytest.raises(
        ValueError, match=rf"{name}: \d+% of .* are zero, as in UTF-16, .*-f {encoding.upper()} -t UTF-8"
    ):
        list(TextCorpus(tmp_path, on_error="raise"))


def test_a_long_document_is_cut_between_paragraphs_on_demand(tmp_path):
    (tmp_path / "a.txt").write_text("A cat sat there. It slept.\n\n" * 5)
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "A dog barked. It ran."}) + "\n")
    cut = {document.name: len(document.sentences) for document in TextCorpus(tmp_path).cut(40)}
    assert cut == {"a.txt#1": 4, "a.txt#2": 4, "a.txt#3": 2, "b.jsonl#1.1": 2}
    assert [document.name for document in TextCorpus(tmp_path).cut(10)][-2:] == ["b.jsonl#1.1", "b.jsonl#1.2"]


def test_bad_rows_are_named_by_line_and_left_out_alone(tmp_path):
    file = tmp_path / "rows.jsonl"
    rows = [b'{"text": "Good."}', b"{broken", b'{"body": "x"}', b'{"text": 3}', b"[1]", b'{"text": "\xe9"}', b"",
            b'{"text": "Last.\\nNew paragraph"}']  # fmt: skip
    file.write_bytes(b"\n".join(rows))
    corpus = TextCorpus(file)
    assert [(document.name, document.sentences) for document in corpus] == [
        ("rows.jsonl#1", ["Good."]),
        ("rows.jsonl#8", ["Last.", "New paragraph"]),
    ]
    assert [problem.place for problem in corpus.problems] == [f"{file}:{line}" for line in (2, 3, 4, 5, 6)]
    assert 'no text in the field "text"; the row has body' in corpus.problems[1].reason


def test_another_field_can_hold_the_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "Here it is."}\n')
    assert sentences_of(tmp_path, text_field="body") == [["Here it is."]]


def test_first_bad_row_ends_reading_if_asked_to(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "Good."}\nbad\n')
    with pytest.raises(ValueError, match=r"a\.jsonl:2: Expecting value"):
        list(TextCorpus(tmp_path, on_error="raise"))


def test_folders_are_read_deeply_in_sorted_order_with_the_top_folder_as_source(tmp_path):
    for name in ("b/z.txt", "b/deep/a.txt", "a.txt", "b/ignored.pdf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("A sentence.\n")
    documents = [(document.name, document.source) for document in TextCorpus(tmp_path)]
    assert documents == [("a.txt#1", "a.txt"), ("b/deep/a.txt#1", "b"), ("b/z.txt#1", "b")]
    starred = [(document.name, document.source) for document in TextCorpus(f"{tmp_path}/**/*.txt")]
    assert starred == documents


def test_missing_path_and_folder_without_text_are_errors_with_a_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"No text file at .*absent: give a file, a folder"):
        TextCorpus(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"No text file at .*\.txt, \.txt\.gz, .*\.jsonl\.zst"):
        TextCorpus(tmp_path)


def test_files_without_a_sentence_are_an_error_that_names_the_first_problem(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n")
    with pytest.raises(ValueError, match=r"No text found in the 1 file\(s\) at .* \(0 problem\(s\)\)\."):
        list(TextCorpus(tmp_path))
    (tmp_path / "b.jsonl").write_text("bad\n")
    with pytest.raises(ValueError, match=r"1 problem\(s\)\)\. First problem: .*b\.jsonl:1: Expecting value"):
        list(TextCorpus(tmp_path))


def test_linked_folders_are_read_once_and_a_link_that_leads_nowhere_is_reported(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/e.txt").write_text("A sentence.\n")
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "plain.txt").write_text("A sentence.\n")
    (folder / "part1").symlink_to(tmp_path / "elsewhere")
    (folder / "part2").symlink_to(tmp_path / "elsewhere")
    (folder / "round").symlink_to(folder)
    assert [document.name for document in TextCorpus(folder, "raise")] == ["part1/e.txt#1", "plain.txt#1"]
    (folder / "gone.txt").symlink_to(tmp_path / "nothing")
    corpus = TextCorpus(folder)
    assert len(list(corpus)) == 2
    assert corpus.problems == [(str(folder / "gone.txt"), "the link leads nowhere.")]
    assert [piece.problems for piece in corpus.pieces(1) if list(piece)] == [corpus.problems, []]
    for path in (folder, f"{folder}/*.txt"):
        with pytest.raises(ValueError, match=r"gone\.txt: the link leads nowhere"):
            TextCorpus(path, "raise")


def test_a_file_whose_name_is_not_utf8_is_a_problem(tmp_path):
    (tmp_path / "a.txt").write_text("A sentence.\n")
    pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.txt")).write_text("A sentence.\n")
    corpus = TextCorpus(tmp_path)
    assert [document.name for document in corpus] == ["a.txt#1"]
    assert corpus.problems == [(f"{tmp_path}/bad\\udcff.txt", "the name is not UTF-8: rename the file.")]


@pytest.mark.parametrize("text_format", ["auto", "lines"])
def test_half_an_emoji_is_a_problem_of_its_row(tmp_path, text_format):
    (tmp_path / "a.jsonl").write_text('{"text": "Good."}\n{"text": "Half \\ud83d here."}\n')
    corpus = TextCorpus(tmp_path, text_format=text_format)
    assert [document.sentences for document in corpus] == [["Good."]]
    ((place, reason),) = corpus.problems
    assert place == f"{tmp_path}/a.jsonl:2" and "U+D83D" in reason


def test_a_line_longer_than_a_document_may_be_is_read_in_parts_that_hold_all_its_words(tmp_path, monkeypatch):
    monkeypatch.setattr(numbered_lines, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(text_files, "LONGEST_DOCUMENT_CHARACTERS", 3000)
    for text in ("".join(f"Sentence {number} stands here. " for number in range(500)), "\u4e2d" * 5000):
        (tmp_path / "a.txt").write_text(f"{text}\nThe end.\n")
        lines = list(numbered_lines.text_lines(tmp_path / "a.txt", 3000))
        assert max(len(line.encode()) for line in lines) < 4100 and "".join(lines) == f"{text}The end."
        documents = list(TextCorpus(tmp_path))
        assert len(documents) > 1
        found = "".join(sentence for document in documents for sentence in document.sentences)
        assert found.replace(" ", "") == f"{text}The end.".replace(" ", "")


def test_a_row_longer_than_a_document_may_be_is_read_as_several(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "LONGEST_DOCUMENT_CHARACTERS", 30)
    rows = [json.dumps({"text": "A cat sat there. " * count}) for count in (1, 5)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    names = {document.name: len(document.sentences) for document in TextCorpus(tmp_path)}
    assert names == {"a.jsonl#1": 1, "a.jsonl#2.1": 2, "a.jsonl#2.2": 2, "a.jsonl#2.3": 1}
