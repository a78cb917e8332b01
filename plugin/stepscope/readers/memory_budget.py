"""The common memory budget of traces in memory and files being read."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stepscope.readers.requests import Stop


def _release_nothing(_bytes: int) -> None:
    pass


class MemoryBudget:
    """Grants memory to readings in the order of their requests.

    Small readings wait for a large one; otherwise it might wait forever.
    """

    def __init__(self, total_bytes: int, release: Callable[[int], None] = _release_nothing) -> None:
        """`release` is called with the bytes that a reading lacks because of retained traces."""
        self.total_bytes = total_bytes
        self.retained_bytes = 0
        self._release = release
        self._changed = threading.Condition()
        self._granted: list[int] = []
        self._line: list[object] = []

    def set_retained(self, retained_bytes: int) -> None:
        """Set the memory that traces occupy after their reading."""
        with self._changed:
            self.retained_bytes = retained_bytes
            self._changed.notify_all()

    @property
    def available_bytes(self) -> int:
        """Memory granted to a reading while no other runs."""
        return max(self.total_bytes - self.retained_bytes, self.total_bytes // 2)

    @contextmanager
    def reserve(self, needed_bytes: int, stop: Stop) -> Iterator[int]:
        """Wait until this much is free, or no other reading runs; yield the granted bytes.

        Raises:
            CancelledError: The reading was cancelled while it waited.
        """
        if (missing := needed_bytes + self.retained_bytes - self.total_bytes) > 0:
            self._release(missing)
        with stop.calls(self._wake):
            granted = self._wait(needed_bytes, stop)
        try:
            yield granted
        finally:
            with self._changed:
                self._granted.remove(granted)
                self._changed.notify_all()

    def _wait(self, needed_bytes: int, stop: Stop) -> int:
        ticket = object()
        with self._changed:
            self._line.append(ticket)
            try:
                self._changed.wait_for(
                    lambda: stop.is_set or (self._line[0] is ticket and self._fits(needed_bytes))
                )
                stop.check()
            finally:
                self._line.remove(ticket)
                self._changed.notify_all()
            granted = min(needed_bytes, self.available_bytes)
            self._granted.append(granted)
            return granted

    def _fits(self, needed_bytes: int) -> bool:
        free_bytes = self.total_bytes - self.retained_bytes - sum(self._granted)
        return not self._granted or needed_bytes <= free_bytes

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
