import pytest
from tiers import once

from keras_bert_impl.text.corpora import Document
from keras_bert_impl.text.rows.language_sampling import copies_of, language_sizes, sampling_factors

pytestmark = once


def test_shares_are_smoothed_and_normalised():
    # The roots of 0.9 and 0.1 are as 3 to 1: shares of 0.75 and 0.25.
    assert sampling_factors({"en": 9, "is": 1}, 0.5) == pytest.approx({"en": 0.75 / 0.9, "is": 0.25 / 0.1})
    # Of 1, 4 and 16 parts of 21: 1, 2 and 4 parts of 7.
    found = sampling_factors({"a": 100, "b": 400, "c": 1600}, 0.5)
    assert found == pytest.approx({"a": 21 / 7, "b": 2 / 7 * 21 / 4, "c": 4 / 7 * 21 / 16})


def test_documents_are_used_as_often_as_the_factor_says_on_average():
    factors = {"en": 0.25, "is": 2.5, "de": 3.0}
    copies = {
        language: [copies_of(Document(f"{language}/{n}", language, []), factors, seed=1) for n in range(4000)]
        for language in ("en", "is", "de", "other")
    }
    assert {language: set(found) for language, found in copies.items()} == {
        "en": {0, 1},
        "is": {2, 3},
        "de": {3},
        "other": {1},
    }
    # Five standard deviations of a binomial: 5 * (0.25 * 0.75 / 4000) ** 0.5.
    assert abs(sum(copies["en"]) / 4000 - 0.25) < 0.035 and abs(sum(copies["is"]) / 4000 - 2.5) < 0.04
    again = [copies_of(Document(f"is/{n}", "is", []), factors, seed=2) for n in range(4000)]
    assert again != copies["is"]


def test_folders_are_languages_and_a_compressed_file_counts_three_times(tmp_path):
    files = {"en/a.txt": 30, "en/more/b.txt.gz": 10, "is/c.txt": 7, "empty/d.txt": 0}
    for name, size in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"a" * size)
    assert language_sizes([(name, tmp_path / name) for name in files]) == {"en": 60, "is": 7}


@pytest.mark.parametrize("names", [["en/a.txt", "b.txt"], ["en/a.txt", "en/b.txt"]])
def test_text_that_is_not_in_folders_of_languages_is_refused(tmp_path, names):
    (tmp_path / "en").mkdir()
    for name in names:
        (tmp_path / name).write_text("text")
    with pytest.raises(ValueError, match="a folder for each of at least two languages"):
        language_sizes([(name, tmp_path / name) for name in names])
