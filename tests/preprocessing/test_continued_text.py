"""Rows whose first half continues the row before, and batches in which they keep this order."""

import itertools

import numpy as np
import pytest
from made_text import ragged
from made_tokenizers import xlnet_tokenizer
from tiers import once

from keras_bert_impl.preprocessing.continued_batches import ContinuedBatches
from keras_bert_impl.preprocessing.continued_text import continue_documents
from keras_bert_impl.preprocessing.pretraining_rows import write_rows
from keras_bert_impl.preprocessing.record_files import RecordReader
from keras_bert_impl.preprocessing.serialized_rows import parse_rows
from keras_bert_impl.tokenizers import WordPieceTokenizer

pytestmark = once

TOKENIZER = xlnet_tokenizer()
END = TOKENIZER.token_to_id("<eod>")
LENGTH, HALF = 16, 8


def documents(count, seed=0):
    random = np.random.default_rng(seed)
    texts = [
        [random.integers(20, 90, random.integers(1, 7)).tolist() for _ in range(random.integers(1, 6))]
        for _ in range(count)
    ]
    return ragged(texts), texts


def stream_of(texts):
    """The text of all documents, and where its sentences end."""
    sentences = [sentence for text in texts for sentence in [*text, [END]]]
    return list(itertools.chain(*sentences)), np.cumsum([0, *map(len, sentences)]).tolist()


def written(directory, bi_data=False, counts=(30, 50), length=LENGTH):
    """Files of rows, numbered as `shards.plan_shards` does it."""
    paths = []
    for place, count in enumerate(counts):
        for backwards in range(1 + bi_data):
            number = place * (1 + bi_data) + backwards
            paths.append(directory / f"examples-{number:05d}.tfrecord")
            write_rows(
                paths[-1],
                documents(count, seed=place)[0],
                TOKENIZER,
                sequence_length=length,
                predictions_per_sequence=4,
                pairs="continued_text",
                number=number,
                backwards=bool(backwards),
            )
    return paths


def batches_of(paths, batch_size=4, **options):
    usual = {"sequence_length": LENGTH, "predictions_per_sequence": 4, "repeat": True}
    usual |= {"masking_unit": "context_span", "masking_rate": 0.25, "mask_token_rate": 0.0, "random_token_rate": 0.0}
    return ContinuedBatches(paths, TOKENIZER, batch_size=batch_size, **{**usual, **options})


@pytest.mark.parametrize("backwards", [False, True])
def test_segments_are_whole_sentences_that_follow_or_are_from_anywhere(backwards):
    found, texts = documents(200)
    text, stops = stream_of(texts)
    tokens, pairs = continue_documents(found, END, 5, 9, seed=3, number=1, backwards=backwards)
    if backwards:
        text, stops = text[::-1], [len(text) - stop for stop in stops[::-1]]
    assert tokens.tolist() == text
    np.testing.assert_array_equal(pairs.first_range[:, 0], 5 * np.arange(len(pairs.first_range)))
    assert len(pairs.first_range) == (len(text) - 14) // 5 + 1  # as many as are full
    kinds = []
    for (first, split), (start, end), is_random in zip(
        pairs.first_range.tolist(), pairs.second_range.tolist(), pairs.next_sentence_labels.tolist(), strict=True
    ):
        begin = first + 5
        filled = min(stop for stop in stops if stop >= begin + 9)  # the sentence in which the room ends
        cuts = [stop for stop in stops if begin < stop < begin + 9]
        assert split in (cuts or [filled]) and start in stops and end in stops
        assert split - begin + end - start >= 9
        if not is_random:
            assert (start, end) == (split, filled) and cuts
        kinds.append((bool(cuts), is_random, split == cuts[-1] if cuts else None))
    chosen = [is_random for has_cuts, is_random, _ in kinds if has_cuts]
    assert 0.4 < np.mean(chosen) < 0.6 and all(is_random for has_cuts, is_random, _ in kinds if not has_cuts)
    lasts = [is_last for has_cuts, _, is_last in kinds if has_cuts]
    assert 0.2 < np.mean(lasts) < 0.9  # the split is drawn


def test_random_segments_begin_all_over_the_file_and_differ_between_files():
    found, texts = documents(300)
    first, second = (continue_documents(found, END, 5, 9, 0, number)[1] for number in (0, 1))
    is_random = first.next_sentence_labels == 1
    starts = first.second_range[is_random, 0] / len(stream_of(texts)[0])
    assert abs(starts.mean() - 0.5) < 0.1 and starts.min() < 0.1 and starts.max() > 0.9
    assert (first.next_sentence_labels != second.next_sentence_labels).any()


def test_rows_are_full_and_their_first_halves_are_the_text(tmp_path):
    [path] = written(tmp_path, counts=(40,))
    columns = parse_rows(RecordReader(path).read(1000))
    ids, lengths = columns["input_ids"]
    assert (lengths == LENGTH).all() and len(lengths) > 20
    rows = ids.reshape(-1, LENGTH)
    text, _ = stream_of(documents(40)[1])
    np.testing.assert_array_equal(rows[:, :HALF].ravel(), text[: HALF * len(rows)])
    assert (rows[:, -1] == TOKENIZER.cls_id).all() and (rows[:, -2] == TOKENIZER.sep_id).all()
    first_length = columns["first_segment_length"].values
    assert (rows[np.arange(len(rows)), first_length - 1] == TOKENIZER.sep_id).all()
    assert (first_length > HALF + 1).all() and (first_length < LENGTH - 2).all()
    # The first segment goes on from the first half, which the next row repeats.
    at = HALF * np.arange(len(rows)) + HALF
    for row, length, begin in zip(rows, first_length, at, strict=True):
        assert row[HALF : length - 1].tolist() == text[begin : begin + length - 1 - HALF]
    assert columns["example_index"].values.tolist() == list(range(len(rows)))


@pytest.mark.parametrize("bi_data", [False, True])
def test_each_row_of_a_batch_continues_that_of_the_batch_before(bi_data, tmp_path):
    batches = batches_of(written(tmp_path, bi_data), bi_data=bi_data)
    texts = [stream_of(documents(count, place)[1])[0] for place, count in enumerate((30, 50))]
    texts += [text[::-1] for text in texts] if bi_data else []
    joined = [" ".join(map(str, text)) for text in texts]
    steps, before, seen = batches.steps, None, []
    assert steps > 3
    for step, (inputs, labels) in enumerate(itertools.islice(iter(batches), 2 * steps)):
        halves = inputs["token_ids"][:, :HALF]
        assert (inputs["continues"] == 0).all() == (step % steps == 0 or not inputs["continues"].any())
        if step % steps == 0:
            assert not inputs["continues"].any()  # an epoch begins
            seen.append([])
        for row, half in enumerate(halves.tolist()):
            seen[-1].append((row % 2, tuple(half)))
            words = " ".join(map(str, half))
            kinds = joined if not bi_data else joined[2:] if row % 2 else joined[:2]
            assert any(words in text for text in kinds)
            if inputs["continues"][row]:
                both = " ".join(map(str, before[row] + half))
                assert any(both in text for text in kinds)
        assert set(inputs["segment_ids"][:, -1]) == {2} and labels["mask_weights"].all()
        before = halves.tolist()
    assert len(set(seen[0])) == len(seen[0])  # no row twice
    assert seen[0] != seen[1]


def test_batches_from_a_step_on_are_those_of_a_run_that_was_there(tmp_path):
    paths = written(tmp_path, bi_data=True)
    whole = list(itertools.islice(iter(batches_of(paths, bi_data=True)), 12))
    part = itertools.islice(iter(batches_of(paths, bi_data=True, start_step=7)), 5)
    for one, other in zip(whole[7:], part, strict=True):
        for ours, theirs in zip(one, other, strict=True):
            assert ours.keys() == theirs.keys()
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name])


def test_each_process_reads_its_own_rows_of_a_batch(tmp_path):
    paths = written(tmp_path, bi_data=True)
    [whole, *_] = itertools.islice(iter(batches_of(paths, bi_data=True)), 1)
    parts = [next(iter(batches_of(paths, bi_data=True, part=(number, 2))))[0]["token_ids"] for number in range(2)]
    np.testing.assert_array_equal(np.concatenate(parts), whole[0]["token_ids"])
    with pytest.raises(ValueError, match=r"2 rows of each direction cannot be divided .* a multiple of 8"):
        batches_of(paths, bi_data=True, part=(0, 4))


def test_an_evaluation_has_smaller_batches_of_few_rows_and_steps_over_all_files(tmp_path):
    paths = written(tmp_path)
    rows = sum(batches_of(paths).counts)
    [(inputs, _)] = batches_of(paths, batch_size=1000, repeat=False)
    assert len(inputs["token_ids"]) == rows
    found = list(batches_of(paths, repeat=False, most_rows=8))
    assert [len(inputs["token_ids"]) for inputs, _ in found] == [4, 4]
    assert found[1][0]["continues"].all() and not found[0][0]["continues"].any()


def test_words_of_text_read_backwards_are_chosen_from_their_beginnings(tmp_path):
    """A span begins with a word, also where a row has the last piece of a word first."""
    goes_on = np.zeros(TOKENIZER.vocabulary_size, bool)
    goes_on[40:] = True  # two tokens of three
    options = {"masking_rate": 0.125, "predictions_per_sequence": 15, "sequence_length": 120}
    batches = batches_of(written(tmp_path, bi_data=True, length=120, counts=(300,)), bi_data=True, **options)
    batches.masking["is_continuation"] = goes_on
    firsts, lengths = ([], []), ([], [])
    for inputs, labels in itertools.islice(iter(batches), 20):
        positions = inputs["mask_positions"]
        assert labels["mask_weights"].all() and (np.diff(positions, axis=1) > 0).all()
        ids = np.take_along_axis(inputs["token_ids"], positions, axis=1)
        np.testing.assert_array_equal(ids, labels["mask_ids"])  # nothing is hidden
        # The half that is first in the text has eight of the 15.
        assert (positions < 60).sum(axis=1).tolist() == [8, 7] * 2
        for row, places in enumerate(positions.tolist()):
            step = -1 if row % 2 else 1
            starts = [place for place in places if place - step not in places]
            firsts[row % 2].extend(not goes_on[inputs["token_ids"][row, place]] for place in starts)
            lengths[row % 2].append(len(places) / len(starts))
    for kind in range(2):
        assert np.mean(firsts[kind]) > 0.8 and np.mean(lengths[kind]) > 1.4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 15}, "sequence_length 15 must be even and at least 10"),
        ({"sequence_length": 8}, "sequence_length 8 must be even and at least 10"),
        ({"tokenizer": WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])}, "of an XLNet"),
    ],
)
def test_rows_that_cannot_be_halved_are_refused(options, message, tmp_path):
    arguments = {"tokenizer": TOKENIZER, "sequence_length": LENGTH, "predictions_per_sequence": 4, **options}
    with pytest.raises(ValueError, match=message):
        write_rows(tmp_path / "rows", documents(9)[0], pairs="continued_text", **arguments)


def test_half_of_an_odd_batch_cannot_be_read_backwards(tmp_path):
    with pytest.raises(ValueError, match="batch_size 3 is odd"):
        batches_of(written(tmp_path, bi_data=True), batch_size=3, bi_data=True)
