"""A function over batches in several processes: results in order, and never more batches under way than memory has room for."""
import collections
import concurrent.futures
import concurrent.futures.process
import multiprocessing
import os
import threading

from .errors import SOFTWARE, Refused
from .stopping import leave_to_parent

AHEAD = 2   # batches for each process


def count_processes():
    return len(os.sched_getaffinity(0))


def _begin(make, arguments):
    """In a new process: it ends with its parent."""
    global _work
    leave_to_parent()
    parent = multiprocessing.parent_process()

    def follow():
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    _work = make(*arguments)


def _run(batch):
    return _work(batch)


def _first(waiting):
    batch, future = waiting.popleft()
    return batch, future.result()


def in_order(make, arguments, batches, processes):
    """Yields (batch, make(*arguments)(batch)) of each batch."""
    if processes == 1:
        work = make(*arguments)
        for batch in batches:
            yield batch, work(batch)
        return
    executor = concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (make, arguments))
    try:
        waiting = collections.deque()
        for batch in batches:
            waiting.append((batch, executor.submit(_run, batch)))
            if len(waiting) > processes * AHEAD:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except concurrent.futures.process.BrokenProcessPool as error:
        raise Refused(SOFTWARE, "a process that encodes was killed, for want of memory perhaps; try --processes 1") from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
