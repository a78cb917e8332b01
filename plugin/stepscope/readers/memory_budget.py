"""One budget of memory: what is kept of what was read, and the readings at work."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stepscope.readers.requests import Stop


def _release_nothing(_bytes: int) -> None:
    """Nothing is kept."""


class MemoryBudget:
    """Gives readings their share of a budget; one that does not fit yet waits.

    Others wait behind it: small ones, which always fit, would keep it waiting for ever.
    """

    def __init__(self, total_bytes: int, release: Callable[[int], None] = _release_nothing) -> None:
        """`release` is told how many bytes of what is kept are in the way of a reading."""
        self.total_bytes = total_bytes
        self._let_go = release
        self._changed = threading.Condition()
        self.retained_bytes = 0
        self._taken: list[int] = []
        self._line: list[object] = []

    def set_retained(self, retained_bytes: int) -> None:
        """Set aside what is kept of what was read."""
        with self._changed:
            self.retained_bytes = retained_bytes
            self._changed.notify_all()

    @property
    def available_bytes(self) -> int:
        """What a reading is given where nothing else is being read."""
        return max(self.total_bytes - self.retained_bytes, self.total_bytes // 2)

    @contextmanager
    def reserve(self, wanted_bytes: int, stop: Stop) -> Iterator[int]:
        """Wait until so much is free, or nothing else is being read; yield how much may be taken.

        Raises:
            CancelledError: the reading was ended while it waited.
        """
        if (missing := wanted_bytes + self.retained_bytes - self.total_bytes) > 0:
            self._let_go(missing)
        with stop.calls(self._wake):
            granted = self._granted(wanted_bytes, stop)
        try:
            yield granted
        finally:
            with self._changed:
                self._taken.remove(granted)
                self._changed.notify_all()

    def _granted(self, wanted_bytes: int, stop: Stop) -> int:
        """Stand in line until it is our turn and there is room."""
        place = object()
        with self._changed:
            self._line.append(place)
            try:
                self._changed.wait_for(
                    lambda: stop.is_set or (self._line[0] is place and self._has_room(wanted_bytes))
                )
                stop.check()
            finally:
                self._line.remove(place)
                self._changed.notify_all()
            granted = min(wanted_bytes, self.available_bytes)
            self._taken.append(granted)
            return granted

    def _has_room(self, wanted_bytes: int) -> bool:
        return not self._taken or wanted_bytes <= self._free_bytes

    @property
    def _free_bytes(self) -> int:
        return self.total_bytes - self.retained_bytes - sum(self._taken)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
