"""Runs the jobs of `shards` in processes on this machine."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import threading


@contextlib.contextmanager
def worker_pool(workers):
    """A pool for `run_jobs`: `workers` processes, including this one."""
    if workers == 1:
        yield None
        return
    # Forked processes would inherit the threads of TensorFlow and of other libraries, which do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers - 1, context, initializer=_prepare_worker) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


def run_jobs(pool, function, settings, jobs):
    """Yields (index, function(settings, job)) for each job, in any order, run by a `worker_pool` and this process.

    This process takes the last of the jobs that no other has started.
    """
    if pool is None:
        yield from ((place, function(settings, job)) for place, job in enumerate(jobs))
        return
    waiting = [pool.submit(function, settings, job) for job in jobs]
    for place in reversed(range(len(jobs))):
        future = waiting[place]
        yield place, function(settings, jobs[place]) if future.cancel() else future.result()


def _prepare_worker():
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # There are as many processes as cores: more threads would only compete for them.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _end_with_parent():
    # A pool's processes do not notice when their parent is killed, and would wait for jobs forever.
    multiprocessing.parent_process().join()
    os._exit(1)
