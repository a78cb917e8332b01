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
"""Entered at the start of a reading and exited at its end; receives its progress."""
OnResult = Callable[[ReadResult], ReadResult]
"""Called with each result on any thread; its return value replaces the result."""


class DaemonThreads:
    """Runs jobs on threads that never keep the process alive, so that Ctrl-C ends it at once.

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
    """Ignore progress."""
    return nullcontext(lambda _: None)


def read_all(
    requests: Sequence[ReadRequest],
    reader: Reader,
    *,
    jobs: int,
    monitor: ProgressMonitor = no_monitor,
    on_result: OnResult | None = None,
) -> tuple[Outcome, ...]:
    """Perform every request, `jobs` in parallel; return the outcomes in the requests' order."""

    def outcome(request: ReadRequest) -> Outcome:
        try:
            with monitor(request) as on_progress:
                result = reader.read(request, on_progress, Stop())
                return on_result(result) if on_result else result
        except Exception as error:  # an error of one file must not stop the others
            return as_unreadable(request.file.path, error)

    if jobs == 1 or len(requests) == 1:
        return tuple(map(outcome, requests))
    outcomes: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()

    def job(index: int) -> Callable[[], None]:
        return lambda: outcomes.put((index, outcome(requests[index])))

    threads = DaemonThreads(min(jobs, len(requests)))
    for index in range(len(requests)):
        threads.submit(job(index))
    by_index = dict(outcomes.get() for _ in requests)
    return tuple(by_index[index] for index in range(len(requests)))
