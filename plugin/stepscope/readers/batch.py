"""Reading of many files at once, and the threads for it."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue

from stepscope.base.errors import UnreadableError, as_unreadable
from stepscope.readers.pool import Reader
from stepscope.readers.requests import OnProgress, ReadRequest, ReadResult, Stop

Outcome = ReadResult | UnreadableError
ProgressMonitor = Callable[[ReadRequest], AbstractContextManager[OnProgress]]
"""Entered when the reading of a file begins, told how far that is, and left when it is over."""
OnResult = Callable[[ReadResult], ReadResult]
"""Given an answer as soon as it is there, on any thread; what it returns goes in its place."""


class DaemonThreads:
    """Runs jobs on threads that never keep the process alive: Ctrl-C ends it at once.

    `concurrent.futures` would finish every queued file first.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for number in range(count):
            name = f"stepscope-reader-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, job: Callable[[], None], /) -> None:
        """Run the job on the next free thread."""
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def no_monitor(_: ReadRequest) -> AbstractContextManager[OnProgress]:
    """Nobody looks on."""
    return nullcontext(lambda _: None)


def read_all(
    orders: Sequence[ReadRequest],
    reader: Reader,
    *,
    jobs: int,
    monitor: ProgressMonitor = no_monitor,
    on_result: OnResult | None = None,
) -> tuple[Outcome, ...]:
    """Carry out every order, `jobs` at once; return what each gave, in the orders' order."""
    outcomes: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()

    def outcome(order: ReadRequest) -> Outcome:
        return _outcome(order, reader, monitor, on_result)

    def job(place: int) -> Callable[[], None]:
        return lambda: outcomes.put((place, outcome(orders[place])))

    if jobs == 1 or len(orders) == 1:
        return tuple(map(outcome, orders))
    threads = DaemonThreads(min(jobs, len(orders)))
    for place in range(len(orders)):
        threads.submit(job(place))
    found = dict(outcomes.get() for _ in orders)
    return tuple(found[place] for place in range(len(orders)))


def _outcome(
    order: ReadRequest, reader: Reader, monitor: ProgressMonitor, on_result: OnResult | None
) -> Outcome:
    try:
        with monitor(order) as tell:
            answer = reader.read(order, tell, Stop())
            return on_result(answer) if on_result else answer
    except Exception as error:  # whatever is wrong with one file, the others go on
        return as_unreadable(order.file.path, error)
