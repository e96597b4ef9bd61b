"""Data preparation writes the same files whatever the number of workers, and after interruptions and damage."""

import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from made_text import ids_one_by_one
from made_tokenizers import byte_pair_tokenizer
from tiers import once

from keras_bert_impl.text.rows import sentence_ids, shards
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS, write_vocabulary
from keras_bert_training import data_preparation, pretraining

pytestmark = once


@pytest.fixture
def small_jobs(monkeypatch, text_folder):
    """Options for a corpus of several pieces, blocks and shards."""
    monkeypatch.setattr(data_preparation, "PIECE_BYTES", 4_000)
    monkeypatch.setattr(data_preparation, "SMALL_BYTES", 0)
    monkeypatch.setattr(data_preparation, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(shards, "SHARD_TOKENS", 1_000)
    return {"input": str(text_folder), "vocabulary_size": 500, "sequence_length": 32, "workers": 1}


def prepare(output, **options):
    return data_preparation.run(data_preparation.PrepareConfig(str(output), **options))


def examples(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*.tfrecord")}


def test_a_corpus_in_pieces_has_many_shards_and_nothing_left_of_the_work(tmp_path, small_jobs):
    summary = prepare(tmp_path / "data", long_sequence_length=64, **small_jobs)
    found = examples(tmp_path / "data")
    assert len([path for path in found if path.parts[1:3] == ("32", "train")]) > 1
    assert set(summary["examples"]) == {"32", "64"} and summary["predictions_per_sequence"] == [5, 10]
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert {shard["path"] for shard in manifest["shards"]} == {path.as_posix() for path in found}
    assert not (tmp_path / "data" / "work").exists()
    assert len((tmp_path / "data" / "held_out.txt").read_text().splitlines()) > 10


@pytest.mark.parametrize(("pattern", "name"), [("", "deep/out"), ("/*/*.txt", "out")])
def test_an_output_within_the_input_is_refused(tmp_path, small_jobs, pattern, name):
    shutil.copytree(small_jobs["input"], tmp_path / "text")
    (tmp_path / "text/sub").mkdir()
    (tmp_path / "text/sub/a.txt").write_text("A cat sat there.")
    options = {**small_jobs, "input": f"{tmp_path}/text{pattern}"}
    with pytest.raises(ValueError, match="is within --input"):
        prepare(tmp_path / "text" / name, **options)
    assert not (tmp_path / "text" / name).exists()


def test_files_that_are_not_read_are_counted_and_an_output_beside_a_glob_is_not_read(tmp_path, small_jobs, capsys):
    shutil.copytree(small_jobs["input"], tmp_path / "text")
    for name in ("a.parquet", "b.csv", "c.csv"):
        (tmp_path / "text" / name).write_text("A cat sat there.")
    prepare(tmp_path / "data", **{**small_jobs, "input": str(tmp_path / "text")})
    assert "left out 3 files with other endings: .csv 2, .parquet 1" in capsys.readouterr().out
    for _ in range(2):
        prepare(tmp_path / "text/out", **{**small_jobs, "input": f"{tmp_path}/text/*.txt"})
    assert "is ready from an earlier run" in capsys.readouterr().out


@pytest.mark.parametrize("pairs, loses", [("next_sentence", True), ("sentence_order", True), ("full_sentences", False)])
def test_text_that_is_in_no_row_is_told(tmp_path, capsys, pairs, loses):
    words = "the cat sat on the mat in the house and ran to the dog ."  # a pair of 21 tokens takes two of these 15
    document = " ".join([f"The{words[3:-2]}."] * 9)
    (tmp_path / "a.jsonl").write_text(f"{json.dumps({'text': document})}\n" * 200)
    write_vocabulary(tmp_path / "vocab.txt", [*SPECIAL_TOKENS, *sorted(set(words.split()))])
    options = {"input": str(tmp_path / "a.jsonl"), "vocab": str(tmp_path / "vocab.txt"), "sequence_length": 24}
    share = prepare(tmp_path / "data", pairs=pairs, **options)["share_of_text_in_no_row"]["24"]
    told = f"  warning: {share:.1%} of the text is in no example of 24 tokens" in capsys.readouterr().out
    assert (share > 0.1) is told is loses


def test_two_workers_of_the_command_import_no_keras_and_write_what_one_writes(tmp_path, text_folder):
    for name in ("keras", "tensorflow", "torch", "jax"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} is imported')\n")
    paths = os.pathsep.join([str(tmp_path), str(pathlib.Path(data_preparation.__file__).parents[2])])
    options = {"input": str(text_folder), "vocabulary_size": 500, "sequence_length": 32, "duplicates": 3}
    words = [f"--{name}={value}" for name, value in {**options, "output": tmp_path / "2", "workers": 2}.items()]
    command = [sys.executable, "-m", "keras_bert_training", "prepare-data", *words]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
    prepare(tmp_path / "1", workers=1, **options)
    assert examples(tmp_path / "1") == examples(tmp_path / "2")


def test_an_interrupted_run_goes_on_without_doing_anything_twice(tmp_path, small_jobs, monkeypatch):
    prepare(tmp_path / "whole", **small_jobs)
    written = []

    def failing(settings, shard):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(shard.path)
        return shards.write_shard(settings, shard)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(data_preparation, "write_shard", failing)
        prepare(tmp_path / "broken", **small_jobs)
    before = {path: (tmp_path / "broken" / path).stat().st_mtime_ns for path in written}
    prepare(tmp_path / "broken", **small_jobs)
    assert before == {path: (tmp_path / "broken" / path).stat().st_mtime_ns for path in written}
    assert examples(tmp_path / "broken") == examples(tmp_path / "whole")


@pytest.mark.parametrize("name", ["vocab.txt", "examples"])
def test_a_damaged_file_is_named_and_made_anew(name, tmp_path, small_jobs, capsys):
    prepare(tmp_path / "data", **small_jobs)
    whole = examples(tmp_path / "data")
    damaged = tmp_path / "data" / (name if name == "vocab.txt" else min(p for p in whole if "train" in p.parts))
    first = damaged.read_bytes()
    content = bytearray(first)
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(SystemExit, match=r"1 of \d+ files are damaged"):
        prepare(tmp_path / "data", verify=True)
    assert str(damaged) in capsys.readouterr().out
    with pytest.raises(ValueError, match="damaged"):
        list(pretraining.open_data(pretraining.PretrainConfig(str(tmp_path / "data"), "")).arrays("train"))
    damaged.unlink()
    prepare(tmp_path / "data", **small_jobs)
    assert examples(tmp_path / "data") == whole and damaged.read_bytes() == first
    others = ("vocab.txt", "tokenizer_config.json", "held_out.txt")
    assert prepare(tmp_path / "data", verify=True) == {"files": len(whole) + len(others)}


def test_the_tokenizer_itself_gives_the_same_files_as_the_words_remembered(tmp_path, small_jobs, monkeypatch):
    for name, options in {"padded": {}, "packed": {"packed": True}, "static": {"static_masks": True}}.items():
        prepare(tmp_path / name, **small_jobs, **options)
        with monkeypatch.context() as patch:
            without = functools.partial(functools.partial, ids_one_by_one)
            patch.setattr(sentence_ids, "sentence_ids", without)
            prepare(tmp_path / f"{name}_without", **small_jobs, **options)
        assert examples(tmp_path / name) == examples(tmp_path / f"{name}_without")


def test_a_file_that_cannot_be_read_is_named(tmp_path, text_folder, small_jobs, capsys):
    shutil.copytree(text_folder, tmp_path / "text")
    small_jobs["input"] = str(tmp_path / "text")
    (tmp_path / "text" / "broken.txt").write_bytes(b"Latin-1 caf\xe9.\n")
    with pytest.raises(ValueError, match=r"broken\.txt: line 1"):
        prepare(tmp_path / "data", **small_jobs)
    prepare(tmp_path / "other", skip_unreadable=True, **small_jobs)
    printed = capsys.readouterr().out
    assert "left out:" in printed
    assert "text files read as running text: 1, one sentence a line: 2\n" in printed


@pytest.mark.full
def test_workers_end_with_a_process_that_is_killed(tmp_path):
    script = tmp_path / "waiting.py"
    script.write_text(
        "import os, time\n"
        "from keras_bert_impl.text.rows.local_jobs import worker_pool\n"
        "if __name__ == '__main__':\n"
        "    with worker_pool(2) as pool:\n"
        "        print(pool.submit(os.getpid).result(), flush=True)\n"
        "        time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as waiting:
        worker = int(waiting.stdout.readline())
        waiting.kill()
        try:
            # The worker also holds the pipe: it closes when both processes have ended.
            assert waiting.communicate(timeout=30) == ("", None)
        except subprocess.TimeoutExpired:
            os.kill(worker, signal.SIGKILL)
            raise


@pytest.fixture
def three_files(tmp_path, text_folder, small_jobs, monkeypatch):
    """Options for a corpus of three files, each one piece, that a test may change."""
    (tmp_path / "text").mkdir()
    for name, source in {"keras": "keras", "numpy": "numpy", "z": "numpy"}.items():
        shutil.copy(text_folder / f"{source}.txt", tmp_path / "text" / f"{name}.txt")
    monkeypatch.setattr(data_preparation, "PIECE_BYTES", 1)
    return {**small_jobs, "vocabulary_size": 200, "input": str(tmp_path / "text")}


def interrupt(output, monkeypatch, **options):
    """Runs a preparation that stops before its first file of examples."""

    def interrupted(settings, shard):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(data_preparation, "write_shard", interrupted)
        prepare(output, **options)


def change(folder, how):
    if how == "added":
        shutil.copy(folder / "keras.txt", folder / "added.txt")
    elif how == "removed":
        (folder / "numpy.txt").unlink()
    else:
        text = (folder / "numpy.txt").read_bytes()
        (folder / "numpy.txt").write_bytes(text.replace(b"e", b"a", 1))  # of the same size


@pytest.mark.parametrize("is_finished", [True, False])
@pytest.mark.parametrize(("how", "name"), [("added", "added"), ("removed", "numpy"), ("changed", "numpy")])
def test_other_input_than_at_the_beginning_is_refused(tmp_path, three_files, monkeypatch, how, name, is_finished):
    if is_finished:
        prepare(tmp_path / "data", **three_files)
    else:
        interrupt(tmp_path / "data", monkeypatch, **three_files)
    change(tmp_path / "text", how)
    with pytest.raises(ValueError, match=rf"was made of: {how} {name}\.txt"):
        prepare(tmp_path / "data", **three_files)


def test_a_copy_of_the_input_is_the_same_input(tmp_path, three_files, monkeypatch, capsys):
    prepare(tmp_path / "whole", **three_files)
    interrupt(tmp_path / "data", monkeypatch, **three_files)
    for file in (tmp_path / "text").iterdir():
        os.utime(file, (0, 0))
    (tmp_path / "text").rename(tmp_path / "moved")
    three_files = {**three_files, "input": str(tmp_path / "moved")}
    prepare(tmp_path / "data", **three_files)
    assert examples(tmp_path / "data") == examples(tmp_path / "whole")
    prepare(tmp_path / "data", **three_files)
    printed = capsys.readouterr().out
    assert "ready from an earlier run" in printed and "numpy.txt = z.txt\n" in printed
    record = json.loads((tmp_path / "data" / "input.json").read_text())["files"]
    assert sorted(record) == ["keras.txt", "numpy.txt", "z.txt"]
    assert record["numpy.txt"]["sha256"] == record["z.txt"]["sha256"] != record["keras.txt"]["sha256"]
    assert [record[name]["piece"] for name in sorted(record)] == [0, 1, 2]


@pytest.mark.parametrize("quickly", [10**9, 0])
def test_a_changed_byte_of_a_shard_is_found_or_it_says_that_sizes_alone_were_compared(
    tmp_path, three_files, monkeypatch, capsys, quickly
):
    monkeypatch.setattr(data_preparation, "QUICKLY_READ_BYTES", quickly)
    prepare(tmp_path / "data", **three_files)
    found = examples(tmp_path / "data")
    shard = tmp_path / "data" / max(found)
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    capsys.readouterr()
    prepare(tmp_path / "data", **three_files)
    out = capsys.readouterr().out
    assert (examples(tmp_path / "data") == found) is (quickly > 0)
    expected = (
        f"{shard} is missing or damaged" if quickly else "compared by their sizes; --verify also compares checksums"
    )
    assert expected in out


def test_a_finished_run_without_record_of_its_input_is_taken_as_it_is(tmp_path, three_files, capsys):
    prepare(tmp_path / "data", **three_files)
    (tmp_path / "data" / "input.json").unlink()
    prepare(tmp_path / "data", **three_files)
    assert "ready from an earlier run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "names"), [("byte_pair", {"vocab.json", "merges.txt"}), ("sentence_piece", {"spiece.model"})]
)
def test_other_tokenizers_are_learned_written_and_read(tmp_path, text_folder, kind, names):
    options = {"input": str(text_folder), "sequence_length": 32, "vocabulary_size": 500, "workers": 1}
    options |= {"tokenizer": kind, "pairs": "full_sentences"}
    prepare(tmp_path / "data", **options)
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert {*names, "tokenizer_config.json"} <= {file["path"] for file in manifest["files"]}
    data = pretraining.open_data(pretraining.PretrainConfig(str(tmp_path / "data"), "", batch_size=4))
    tokenizer = data.tokenizer
    assert tokenizer.kind == kind and tokenizer.vocabulary_size == 500
    text = ""
    for rows in data.unmasked_rows("validation"):
        assert (rows[:, 0] == tokenizer.cls_id).all() and ((rows == tokenizer.sep_id).sum(axis=1) >= 1).all()
        text += "".join(tokenizer.decode(row) for row in rows)
    assert text.count(" ") > 0.1 * len(text)
    before = examples(tmp_path / "data")
    del options["vocabulary_size"]
    prepare(tmp_path / "again", vocab=str(tmp_path / "data"), **options)
    assert examples(tmp_path / "again") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab": "."}, "holds another tokenizer"),
        ({"vocab": "cased.txt"}, "upper-case letters"),
        ({"masking_unit": "span"}, "is for --static_masks"),
        ({"predictions_per_sequence": 129}, "exceeds the 128 tokens"),
    ],
)
def test_options_that_suit_neither_vocabulary_nor_rows_are_refused(tmp_path, text_folder, options, message):
    byte_pair_tokenizer().save_pretrained(tmp_path)
    write_vocabulary(tmp_path / "cased.txt", [*SPECIAL_TOKENS, "The"])
    if "vocab" in options:
        options = {"vocab": str(tmp_path / options["vocab"])}
    with pytest.raises(ValueError, match=message):
        prepare(tmp_path / "data", input=str(text_folder), **options)
    assert not (tmp_path / "data").exists()


def novel(number):
    """Paragraphs of two wrapped sentences, a hundred thousand characters."""
    paragraph = f"It was the day on which the number {number}\ncame to us. Then it went\naway from here.\n\n"
    return paragraph * (100_000 // len(paragraph))


def test_few_long_documents_are_cut_so_that_parts_are_held_out(tmp_path, capsys):
    folder = tmp_path / "novels"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text(novel(number))
    summary = prepare(tmp_path / "data", input=str(folder), vocabulary_size=300, sequence_length=32)
    assert "  5 documents are too few to hold out whole ones: documents of more than 16,000" in capsys.readouterr().out
    assert all(summary["corpus"][split]["documents"] >= 2 for split in ("train", "validation", "test"))
    assert prepare(tmp_path / "data", input=str(folder), vocabulary_size=300, sequence_length=32) == summary
