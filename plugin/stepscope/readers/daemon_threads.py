"""Threads that never keep the process alive."""

import threading
from collections.abc import Callable
from queue import SimpleQueue


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
        """Run the job on the next thread that is free."""
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()
