"""The tables of docs/speed.md, README.md and the record are those of benchmarks/results; each result is of a commit."""

import json
import pathlib
import subprocess
import sys

import pytest
from tiers import once

ROOT = pathlib.Path(__file__).parents[1]
pytestmark = once
CONDITIONS = {
    "date": "2026-11-27",
    "commit": "0123456789" * 4,
    "machine": {"processor": "Some CPU", "cores": 2},
    "others_took": 0.25,
    "rounds": 3,
    "versions": {"keras": "3.15.1"},
}
RATES = {
    "title": "Text to ids",
    "unit": "MB",
    "ratios": [{"ours": "keras_bert_impl: jax", "against": "Peer: jax", "ratio": 2.0, "at_least": 1.5}] * 2,
    "conditions": CONDITIONS,
    "rates": {"keras_bert_impl: jax": [2.0, 9.0, 4.0], "Peer: jax": [2.0, 3.0, 1.0], "Other: jax": [7.0]},
}


@pytest.fixture
def speed_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import speed_page

    return speed_page


def test_the_pages_hold_the_committed_results_which_say_where_and_when_and_no_more(speed_page):
    assert {path.relative_to(ROOT).as_posix() for path in speed_page.PAGES} == {
        "benchmarks/results/speed.md",
        "docs/speed.md",
        "README.md",
    }
    for path, written in speed_page.PAGES.items():
        text = path.read_text(encoding="utf-8")
        assert text == written(text, speed_page.results()), "python benchmarks/speed_page.py writes it"
    for result in speed_page.results().values():
        assert set(result["conditions"]) == set(CONDITIONS)
        assert set(result["conditions"]["machine"]) == {"processor", "cores"}


def test_readme_has_first_ratios_and_those_that_are_lost(speed_page):
    """Of quiet machines alone. A peer is another library: our own other encoder is none."""

    def ratio(against, value):
        return {"ours": "keras_bert_impl: jax", "against": against, "ratio": value, "at_least": 1.0}

    rates = RATES["rates"] | {"our BERT: jax": [1.0], "Other: jax": [8.0], "Third: jax": [3.0]}
    others = [ratio("Other: jax", 0.5), ratio("Third: jax", 1.33)]
    ratios = [ratio("our BERT: jax", 0.9), *RATES["ratios"], *others]
    result = {"title": "Text to ids", "unit": "MB", "ratios": ratios, "rates": rates}
    text = "# Name\n<!-- table: first ratios -->\nold\n<!-- end -->\nafter\n"
    quiet = result | {"conditions": CONDITIONS | {"others_took": 0.02}}
    assert speed_page.readme(text, {"tokenizing": quiet}).splitlines()[4:-2] == [
        "| Text to ids | 4 MB/s (jax) | Peer 2 | 2.00 |",
        "| Text to ids | 4 MB/s (jax) | Other 8 | 0.50 |",
    ]
    assert "Text to ids" not in speed_page.readme(text, {"tokenizing": result | {"conditions": CONDITIONS}})


def test_the_page_has_every_ratio_with_its_settings(speed_page):
    """Other libraries alone: not our own other encoder."""
    rates = {"keras_bert_impl: jax bfloat16": [4.0], "Peer: jax float32": [2.0], "our BERT: jax": [1.0]}
    ours = {"ours": "keras_bert_impl: jax bfloat16", "at_least": 1.0}
    ratios = [
        {**ours, "against": "Peer: jax float32", "ratio": 2.0},
        {**ours, "against": "our BERT: jax", "ratio": 4.0},
    ]
    quiet = CONDITIONS | {"others_took": 0.02}
    result = {"title": "Text to ids", "unit": "MB", "ratios": ratios, "rates": rates, "conditions": quiet}
    text = "# Name\n<!-- table: all ratios -->\nold\n<!-- end -->\nafter\n"
    assert speed_page.page(text, {"tokenizing": result}).splitlines()[4:-2] == [
        "| Text to ids | jax bfloat16 | 4 MB/s | Peer 2 (jax float32) | 2.00 |"
    ]
    with pytest.raises(ValueError, match="0 tables of speed"):
        speed_page.page("# Name\n", {"tokenizing": result})


def test_table_of_rates(speed_page):
    """Ours 2, 9, 4 beside 2, 3, 1: medians 4 and 2; 1, 3 and 4 times as fast. A ratio given twice is one row."""
    lines = speed_page.lines_of("tokenizing", RATES)
    assert lines[-1] == "| jax | 4 | Peer: jax | 2 | 2.00 | 1.00 to 4.00 |"
    assert len(lines) == 5
    assert lines[0] == (
        "`benchmarks/tokenizing.py`, 2026-11-27, commit 0123456789, medians of 3 rounds on **a busy machine, "
        "whose ratios say little**, 2 cores of Some CPU, of which other programs took 25%; keras 3.15.1."
    )
    alone = RATES | {"conditions": CONDITIONS | {"rounds": 1, "others_took": 0.02}}
    assert "commit 0123456789, one round on a quiet machine" in speed_page.lines_of("tokenizing", alone)[0]


def test_table_of_seconds(speed_page):
    """Theirs takes 6 and 9 to the end where ours takes 3: 2 and 3 times as soon."""
    result = {
        "ratios": [{"ours": "keras_bert_impl: jax", "against": "Peer: jax", "ratio": 2.5, "at_least": 1.0}],
        "conditions": CONDITIONS,
        "seconds": {
            "keras_bert_impl: jax": [{"import": 1, "predict": 3}, {"import": 2, "predict": 3}],
            "Peer: jax": [{"import": 1, "predict": 6}, {"import": 1, "predict": 9}],
        },
    }
    rows = speed_page.lines_of("first_seconds", result)[-2:]
    assert rows == ["| ours: jax | 1.5 | 3.0 |  |  |", "| Peer: jax | 1.0 | 7.5 | 2.50 | 2.00 to 3.00 |"]


@pytest.mark.parametrize("commit", [None, "0123456789"])
def test_result_of_no_commit_is_refused(speed_page, tmp_path, commit):
    (tmp_path / "tokenizing.json").write_text(json.dumps(RATES | {"conditions": CONDITIONS | {"commit": commit}}))
    with pytest.raises(ValueError, match=r"tokenizing\.json names no commit"):
        speed_page.results(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conditions": CONDITIONS | {"commit": None}}, "changed while it was measured"),
        ({"rates": RATES["rates"] | {"Peer: jax": [2.0]}}, "Peer: jax gave 1 of 3 figures"),
        ({"ratios": []}, "no other library"),
    ],
)
def test_result_that_cannot_be_compared_is_not_kept(speed_page, change, message):
    speed_page.check("tokenizing", RATES)
    with pytest.raises(SystemExit, match=message):
        speed_page.check("tokenizing", RATES | change)


def test_changed_code_is_measured_again(speed_page, tmp_path):
    """A commit of other files, such as the results themselves, changes nothing; code does, committed or not."""
    import conditions

    def git(*words):
        names = ["-c", "user.name=A", "-c", "user.email=a@b"]
        subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True)

    code, page = tmp_path / "keras_bert_impl/code.py", tmp_path / "speed.md"
    code.parent.mkdir()
    code.write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "code")
    commit = conditions.commit_of_code(tmp_path)
    page.write_text("a table")
    git("add", ".")
    git("commit", "-m", "page")
    assert not conditions.changed_since(commit, tmp_path)
    code.with_name("more.py").write_text("2")
    assert conditions.changed_since(commit, tmp_path) and conditions.commit_of_code(tmp_path) is None
    git("add", ".")
    git("commit", "-m", "code")
    assert conditions.changed_since(commit, tmp_path) and conditions.changed_since("0" * 40, tmp_path)


def test_other_programs_are_told_from_our_own(speed_page):
    """What a child of this process computes is not what others take."""
    from conditions import seconds_of_cores

    before = seconds_of_cores()
    subprocess.run([sys.executable, "-c", "for _ in range(10**7): pass"], check=True)
    busy, own = (after - first for after, first in zip(seconds_of_cores(), before, strict=True))
    assert own > 0.1 and busy >= own * 0.8  # the system counts in steps of a hundredth
