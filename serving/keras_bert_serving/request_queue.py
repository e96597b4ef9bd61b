"""Requests that wait are run together in batches of texts of similar lengths.

Nothing waits for company: as soon as a worker is free, the request whose turn it is runs, together with those waiting
requests for the same signature whose texts are about as long. Models take turns, and so do requests: each has one part
in every round, so that a large one goes on however many others come. Under load batches fill by themselves; without
load a request runs alone at once. benchmarks/serving.py compares this with the batching inside TensorFlow, which waits
for a time-out and pads short texts to the longest one.
"""

import asyncio
import concurrent.futures
import dataclasses
import itertools
import time

import numpy as np
from grpc import StatusCode

from keras_bert_impl.export.opened import joined
from keras_bert_serving.batch_choice import (
    BATCH_BYTES_ON_CPU,
    choose_company,
    part_starts,
    row_lengths,
    rows_of,
    texts_of_row,
)
from keras_bert_serving.errors import ServingError, error_of, invalid


@dataclasses.dataclass(eq=False)
class Work:
    """Rows that wait: a request, or a part of a large one.

    Attributes:
        inputs: arrays by name, all with `rows` rows.
        texts: that are computed, at least one for each row.
        length: bytes of the longest row; 0 where the inputs are not texts.
        deadline: time.monotonic() after which nobody waits for the answer.
        done: the future of the outputs.
        turn: of the works of a model, the lowest turn runs first. What arrives has the one after that which is running,
            and each part of a large request the one after the part before it.
    """

    servable: object
    signature: object
    inputs: dict[str, np.ndarray]
    rows: int
    texts: int
    length: int
    deadline: float
    done: asyncio.Future
    turn: int = 0
    arrived: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def group(self):
        """Only work of one group can be one batch: the signature of one version, and rows of one shape."""
        return id(self.servable), self.signature.name, *(array.shape[1:] for array in self.inputs.values())


class RequestQueue:
    """Runs requests in worker threads.

    Args:
        workers: batches that run at the same time.
        max_batch_size: largest number of texts in a batch; 1 means that no requests are merged.
        max_batch_bytes: bytes of text in a batch, padding included, beyond which no further row joins.
        max_queued_rows: texts that may wait; what comes then is refused.
        observe: called with (servable, signature, rows, seconds waited, seconds run) for each batch.
    """

    def __init__(
        self,
        workers=1,
        max_batch_size=32,
        max_queued_rows=2048,
        max_batch_bytes=BATCH_BYTES_ON_CPU,
        observe=lambda *batch: None,
    ):
        self.max_batch_size, self.max_queued_rows = max_batch_size, max_queued_rows
        self.max_batch_bytes = max_batch_bytes
        self.queued_rows = 0
        self._waiting = []  # in the order of arrival
        self._turns = {}  # of each model: the turn that is running
        self._batches, self._last_batch = itertools.count(1), {}  # of each model: the number of its last batch
        self._free = workers
        self._observe = observe
        self._threads = concurrent.futures.ThreadPoolExecutor(workers, "model")
        self._running = set()

    async def run(self, servable, signature, inputs, deadline):
        """The outputs of a request, by name.

        Args:
            servable: Servable that answers.
            signature: one of its signatures.
            inputs: arrays by name, as `request_inputs.check_inputs` returns them.
            deadline: time.monotonic() at which the client stops waiting.

        Raises: ServingError.
        """
        rows, of_row = rows_of(inputs), texts_of_row(inputs)
        if of_row > self.max_batch_size:
            raise invalid(
                f"An example of the request has {of_row} texts; the server takes at most {self.max_batch_size} (option "
                "--max_batch_size), since they are computed together."
            )
        lengths = row_lengths(inputs, rows or 1)
        order, starts = np.argsort(lengths, kind="stable"), []
        if rows is not None and rows > 1 and signature.mergeable:
            starts = part_starts(lengths[order], max(1, self.max_batch_size // max(1, of_row)), self.max_batch_bytes)
        if not starts:
            return await self._submit(servable, signature, inputs, lengths, of_row, deadline)
        self._check_room(rows * of_row)
        parts = [
            ({name: array[part] for name, array in inputs.items()}, lengths[part]) for part in np.split(order, starts)
        ]
        running = [
            asyncio.ensure_future(self._submit(servable, signature, *part, of_row, deadline, number))
            for number, part in enumerate(parts)
        ]
        try:
            found = await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
        back = np.argsort(order, kind="stable")
        return {name: joined([part[name] for part in found])[back] for name in signature.outputs}

    async def _submit(self, servable, signature, inputs, lengths, of_row, deadline, number=0):
        rows, length = len(lengths), int(lengths.max())
        texts = rows * max(1, of_row)
        self._check_room(texts)
        done = asyncio.get_running_loop().create_future()
        turn = self._turns.get(servable.name, 0) + 1 + number
        work = Work(servable, signature, inputs, rows, texts, length, deadline, done, turn)
        self._waiting.append(work)
        self.queued_rows += texts
        self._start()
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await done
        except TimeoutError:
            raise ServingError(
                StatusCode.DEADLINE_EXCEEDED, "The answer was not ready in time: the server is busy, or the model slow."
            ) from None
        finally:
            if work in self._waiting:  # nobody waits for it any more: others may take its place at once
                self._take(work)

    def _check_room(self, rows):
        if self.queued_rows + rows > self.max_queued_rows:
            raise ServingError(
                StatusCode.RESOURCE_EXHAUSTED,
                f"{self.queued_rows} examples are waiting and {rows} more would exceed {self.max_queued_rows} "
                "(option --max_queued_rows): try again later.",
            )

    def _start(self):
        """Gives waiting work to free workers."""
        while self._free and self._waiting:
            try:
                batch = self._next_batch()
            except Exception as failure:  # the oldest cannot be put into a batch: what waits behind it goes on
                batch, oldest = [], self._waiting[0]
                self._take(oldest)
                resolve(oldest, error_of(failure))
            if not batch:
                continue
            self._free -= 1
            task = asyncio.ensure_future(self._run_batch(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _next_batch(self):
        """The work whose turn it is and what runs with it, taken out of the queue."""
        now = time.monotonic()
        for work in [work for work in self._waiting if work.done.done() or work.deadline < now]:
            self._take(work)  # nobody waits for it any more
        if not self._waiting:
            return []
        name = min({work.servable.name for work in self._waiting}, key=lambda name: self._last_batch.get(name, 0))
        first = min((work for work in self._waiting if work.servable.name == name), key=lambda work: work.turn)
        self._last_batch[name], self._turns[name] = next(self._batches), first.turn
        alike = [work for work in self._waiting if work.group == first.group and work is not first]
        alike = alike if first.signature.mergeable else []
        batch = choose_company(first, alike, self.max_batch_size, self.max_batch_bytes)
        for work in batch:
            self._take(work)
        return batch

    def _take(self, work):
        self._waiting.remove(work)
        self.queued_rows -= work.texts

    async def _run_batch(self, batch):
        """Runs a batch. Whatever fails, each of its works gets an answer or an error, and the queue goes on."""
        began, loop = time.monotonic(), asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self._threads, run_together, batch)
        except Exception as failure:
            answers = [error_of(failure) for _ in batch]
        self._free += 1
        for work, answer in zip(batch, answers, strict=True):
            resolve(work, answer)
        self._start()
        rows, first = sum(work.rows for work in batch), batch[0]
        self._observe(first.servable, first.signature, rows, began - first.arrived, time.monotonic() - began)

    async def close(self):
        """Waits for what runs, and ends the workers."""
        while self._running:
            await asyncio.wait(self._running)
        self._threads.shutdown()


def run_together(batch):
    """The outputs, or the ServingError, of each work of a batch; called in a worker thread."""
    first = batch[0]
    if len(batch) == 1:
        return [run_alone(first)]
    try:
        inputs = {name: np.concatenate([work.inputs[name] for work in batch]) for name in first.inputs}
        outputs = first.servable.run(first.signature.name, inputs)
        check_rows(outputs, sum(work.rows for work in batch))
        return divided(outputs, batch)
    except Exception:  # one of the requests cannot be answered: the others must not fail with it
        return [run_alone(work) for work in batch]


def divided(outputs, batch):
    """The outputs of each work, out of those of a batch."""
    answers, start = [], 0
    for work in batch:
        rows = slice(start, start + work.rows)
        own = {name: array[rows] for name, array in outputs.items()}
        answers.append(work.signature.cut_to_own_width(own))
        start += work.rows
    return answers


def resolve(work, answer):
    """Gives a work its outputs or its ServingError, if somebody still waits for it."""
    if work.done.done():
        return
    if isinstance(answer, ServingError):
        work.done.set_exception(answer)
    else:
        work.done.set_result(answer)


def run_alone(work):
    """The outputs, or the ServingError, of one work."""
    try:
        return work.servable.run(work.signature.name, work.inputs)
    except Exception as failure:
        return error_of(failure)


def check_rows(outputs, rows):
    """Raises ValueError unless each output has a row for each row of the batch."""
    for name, array in outputs.items():
        if array.ndim == 0 or len(array) != rows:
            raise ValueError(f"output {name} has shape {array.shape} for {rows} examples")
