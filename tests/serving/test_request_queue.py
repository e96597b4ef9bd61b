"""Requests that wait run together, by length, and each gets what it would get alone."""

import asyncio
import threading
import time

import numpy as np
import pytest
from grpc import StatusCode
from tiers import on

from keras_bert_serving import request_queue
from keras_bert_serving.batch_choice import part_starts
from keras_bert_serving.errors import ServingError, invalid
from keras_bert_serving.request_queue import RequestQueue
from keras_bert_serving.signatures import Array, Signature

pytestmark = on("tensorflow")

STRINGS, NUMBERS = Array(np.dtype(object), (None,)), Array(np.dtype(np.int64), (None,))
MEASURE = Signature("measure", {"text": STRINGS}, {"length": NUMBERS}, "")
WIDE = Array(np.dtype(object), (None, None))
WORDS = Signature("words", {"text": STRINGS}, {"words": WIDE, "labels": WIDE, "probabilities": WIDE}, "")
UNKNOWN = Signature("unknown", {"text": STRINGS}, {"vectors": WIDE}, "")


class Measuring:
    """Notes which texts run together, and waits until it is let go."""

    def __init__(self):
        self.batches, self.may_run, self.name, self.version = [], threading.Event(), "toy", 1
        self.may_run.set()

    def run(self, signature, inputs):
        texts = inputs["text"].tolist()
        self.batches.append(texts)
        assert self.may_run.wait(10)
        if b"boom" in texts:
            raise invalid("boom is refused")
        if signature == "measure":
            return {"length": np.array([len(text) for text in texts])}
        rows = [text.split() for text in texts]
        width = max(map(len, rows), default=0)
        padded = np.array([row + [b""] * (width - len(row)) for row in rows], object).reshape(len(rows), width)
        return {name: padded for name in ("words", "labels", "probabilities")}


def texts(*values):
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return {"text": array}


async def ask_while_busy(queue, servable, requests, signature=MEASURE, seconds=20.0):
    """Results or errors of requests that all arrive while the worker is busy with another."""
    servable.may_run.clear()
    deadline = time.monotonic() + 20
    busy = asyncio.ensure_future(queue.run(servable, signature, texts("busy"), deadline))
    await asyncio.sleep(0.05)
    tasks = [asyncio.ensure_future(queue.run(servable, signature, one, time.monotonic() + seconds)) for one in requests]
    await asyncio.sleep(max(0.05, seconds * 2) if seconds < 1 else 0.05)
    servable.may_run.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    await busy
    await queue.close()
    return found


def run(requests, signature=MEASURE, seconds=20.0, **options):
    servable = Measuring()
    found = asyncio.run(ask_while_busy(RequestQueue(**options), servable, requests, signature, seconds))
    return found, servable.batches[1:]


def test_what_waits_runs_together_and_each_gets_its_rows():
    found, batches = run([texts("a", "bb"), texts("ccc"), texts("dddd")])
    assert [answer["length"].tolist() for answer in found] == [[1, 2], [3], [4]]
    assert batches == [[b"a", b"bb", b"ccc", b"dddd"]]


def test_long_and_short_texts_run_apart():
    found, batches = run([texts("a" * 9), texts("b" * 1500), texts("c" * 10), texts("d" * 1400)], max_batch_bytes=9000)
    assert [answer["length"][0] for answer in found] == [9, 1500, 10, 1400]
    assert [[len(text) for text in batch] for batch in batches] == [[9, 10], [1500, 1400]]


def test_a_batch_has_no_more_rows_and_bytes_than_allowed():
    assert [len(batch) for batch in run([texts("a")] * 7, max_batch_size=3)[1]] == [3, 3, 1]
    assert [len(batch) for batch in run([texts("a" * 100)] * 5, max_batch_bytes=250)[1]] == [2, 2, 1]
    assert [len(batch) for batch in run([texts("a")] * 2, max_batch_size=1)[1]] == [1, 1]


def test_a_large_request_runs_in_parts_by_length_and_comes_back_in_order():
    values = ["a" * (n * 37 % 50) for n in range(50)]
    (answer,), batches = run([texts(*values)], max_batch_size=8)
    assert answer["length"].tolist() == [len(value) for value in values]
    assert [len(batch) for batch in batches] == [8] * 6 + [2]
    assert max(map(len, batches[0])) < min(map(len, batches[-1]))


ENDINGS = Signature(
    "measure", {"text": STRINGS, "endings": Array(np.dtype(object), (None, None))}, {"length": NUMBERS}, ""
)


def choices(rows, width):
    """A request of multiple choice: `rows` texts with `width` endings each."""
    return {**texts(*"a" * rows), "endings": np.full((rows, width), b"bb", object)}


def soon():
    return time.monotonic() + 20


def test_the_parts_of_a_large_request_take_turns_with_other_requests():
    (large, *_), batches = run([texts(*["large"] * 40), texts("a"), texts("b")], max_batch_size=4)
    assert large["length"].tolist() == [5] * 40
    # One part runs, the next has the same turn as what came meanwhile, if not a later one.
    assert any({b"a", b"b"} <= set(batch) for batch in batches[:2]) and len(batches) == 11


def test_a_large_request_is_answered_however_many_others_come():
    """Each of 64 clients asks again as soon as it is answered: in every round, one part and at most 64 short texts."""

    async def ask():
        queue, servable, deadline = RequestQueue(max_batch_size=32), Measuring(), soon()
        large = asyncio.ensure_future(queue.run(servable, MEASURE, texts(*["a" * 1500] * 5), deadline))

        async def ask_again():
            while not large.done() and len(servable.batches) < 300:
                await queue.run(servable, MEASURE, texts("b"), deadline)

        await asyncio.gather(*(ask_again() for _ in range(64)))
        is_answered = large.done()
        await large
        await queue.close()
        return is_answered, len(servable.batches)

    is_answered, batches = asyncio.run(ask())
    assert is_answered and batches < 5 * (64 + 1)


def test_models_take_turns():
    async def ask():
        queue, busy, other = RequestQueue(max_batch_size=1), Measuring(), Measuring()
        busy.name, other.name, other.batches = "busy", "other", busy.batches
        busy.may_run.clear()
        asked = [queue.run(busy, MEASURE, texts("busy"), soon()) for _ in range(30)]
        asked.append(queue.run(other, MEASURE, texts("other"), soon()))
        tasks = [asyncio.ensure_future(one) for one in asked]
        await asyncio.sleep(0.05)
        busy.may_run.set()
        await asyncio.gather(*tasks)
        await queue.close()
        return busy.batches

    assert asyncio.run(ask()).index([b"other"]) <= 2


def test_the_texts_of_a_row_count():
    """A row of multiple choice computes as many texts as it has endings."""
    (refused, found), batches = run([choices(1, 33), choices(10, 8)], ENDINGS, max_batch_size=32)
    assert "An example of the request has 33 texts; the server takes at most 32" in str(refused)
    assert found["length"].tolist() == [1] * 10 and [len(batch) for batch in batches] == [4, 4, 2]
    _, batches = run([choices(1, 8)] * 5, ENDINGS, max_batch_size=16)
    assert [len(batch) for batch in batches] == [2, 2, 1]
    found, _ = run([choices(1, 8)] * 3, ENDINGS, max_queued_rows=20, max_batch_size=8)
    assert [getattr(one, "code", None) for one in found] == [None, None, StatusCode.RESOURCE_EXHAUSTED]


def test_parts_are_cut_by_rows_and_by_bytes():
    assert part_starts([1, 1, 1, 1, 1], 2, 100) == [2, 4]
    assert part_starts([10, 40, 50, 90], 10, 100) == [2, 3]
    assert part_starts([500, 500], 10, 100) == [1]
    assert part_starts([1, 2], 10, 100) == []


def test_arrays_as_wide_as_the_longest_row_are_cut_to_the_width_they_have_alone():
    found, batches = run([texts("the cat"), texts("a", "it ran away"), texts("")], WORDS)
    assert len(batches) == 1
    assert [answer["words"].shape for answer in found] == [(1, 2), (2, 3), (1, 0)]
    assert found[0]["words"].tolist() == [[b"the", b"cat"]]


def test_arrays_whose_width_nobody_shows_are_never_merged_or_split():
    (answer,), batches = run([texts(*"abcd")], UNKNOWN, max_batch_size=3)
    assert answer["words"].tolist() == [[b"a"], [b"b"], [b"c"], [b"d"]] and len(batches) == 1
    for shape in ((None,), None, (3,)):
        signature = Signature("s", {"x": Array(np.dtype(np.float32), shape)}, {"y": NUMBERS}, "")
        assert signature.mergeable == (shape == (None,))


def test_the_parts_of_a_large_request_are_filled_up_to_the_longest_row():
    (answer,), batches = run([texts("the cat sat", "a", "it ran", "b")], WORDS, max_batch_size=2)
    assert answer["words"].tolist() == [
        [b"the", b"cat", b"sat"],
        [b"a", b"", b""],
        [b"it", b"ran", b""],
        [b"b", b"", b""],
    ]
    assert [len(batch) for batch in batches] == [2, 2]


def test_a_request_that_fails_does_not_fail_the_others_of_its_batch():
    found, batches = run([texts("a"), texts("boom"), texts("cc")])
    assert batches[0] == [b"a", b"cc", b"boom"]
    assert found[0]["length"].tolist() == [1] and found[2]["length"].tolist() == [2]
    assert isinstance(found[1], ServingError) and "boom is refused" in str(found[1])


def test_a_full_queue_refuses_and_takes_again_when_it_is_empty():
    found, _ = run([texts("a", "b"), texts("c", "d"), texts("e")], max_queued_rows=4)
    assert found[2].code is StatusCode.RESOURCE_EXHAUSTED and "max_queued_rows" in str(found[2])
    assert found[1]["length"].tolist() == [1, 1]


def test_a_request_whose_time_is_over_is_told_so_and_not_computed():
    found, batches = run([texts("a")], seconds=0.05)
    assert found[0].code is StatusCode.DEADLINE_EXCEEDED and batches == []


def test_requests_that_nobody_waits_for_take_no_room_while_a_batch_runs():
    async def ask():
        queue, servable = RequestQueue(max_queued_rows=2), Measuring()
        servable.may_run.clear()
        busy, cancelled, late = (
            asyncio.ensure_future(queue.run(servable, MEASURE, texts(value), time.monotonic() + seconds))
            for value, seconds in (("busy", 20), ("cancelled", 20), ("late", 0.05))
        )
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.gather(cancelled, late, return_exceptions=True)
        waiting = queue.queued_rows
        servable.may_run.set()
        await busy
        await queue.close()
        return waiting

    assert asyncio.run(ask()) == 0


@pytest.mark.parametrize(
    "outputs",
    [
        {"logits": np.zeros((3, 2)), "probabilities": np.zeros((3, 2)), "labels": np.full((3, 0), b"", object)},
        {name: np.zeros((3, 0, 5), object) for name in ("tokens", "token_ids", "probabilities")},
        {name: np.full((3, 0), b"", object) for name in ("words", "labels", "probabilities")},
    ],
    ids=["no label above 0.5", "no mask", "no word"],
)
def test_outputs_without_a_column_are_divided(outputs):
    """As when several requests run together of which none has a label, a mask or a word."""
    shapes = {name: (None, array.shape[1] or None, *array.shape[2:]) for name, array in outputs.items()}
    arrays = {name: Array(array.dtype, shapes[name]) for name, array in outputs.items()}
    signature = Signature("s", {"text": STRINGS}, arrays, "")
    assert signature.mergeable
    found = signature.cut_to_own_width({name: array[:1] for name, array in outputs.items()})
    assert all(found[name].shape == (1, *array.shape[1:]) for name, array in outputs.items())


def explode(*arguments, **options):
    raise MemoryError("exploded")


PLACES = {
    "the model": (Measuring, "run"),
    "the check of its outputs": (request_queue, "check_rows"),
    "the division of outputs": (Signature, "cut_to_own_width"),
    "the worker": (request_queue, "run_together"),
    "the choice of company": (request_queue, "choose_company"),
    "the lengths of rows": (request_queue, "row_lengths"),
    "the metrics": None,
}


@pytest.mark.parametrize("place", PLACES)
def test_whatever_fails_every_request_is_answered_and_the_queue_goes_on(place, monkeypatch):
    async def fail_and_go_on():
        queue, servable = RequestQueue(), Measuring()
        with monkeypatch.context() as broken:
            broken.setattr(*(PLACES[place] or (queue, "_observe")), explode)
            asked = [queue.run(servable, WORDS, texts(value), soon()) for value in ("a", "b c", "")]
            failed = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5)
        answer = await asyncio.wait_for(queue.run(servable, WORDS, texts("a b"), soon()), 5)
        await queue.close()
        return failed, answer, queue.queued_rows

    failed, answer, queued = asyncio.run(fail_and_go_on())
    assert answer["words"].tolist() == [[b"a", b"b"]] and queued == 0
    assert all(isinstance(one, (dict, ServingError, MemoryError)) for one in failed)
