"""How long reading will still take, from what was measured so far."""

import threading
from dataclasses import dataclass, replace

from stepscope.readers.requests import Phase, ReadProgress

ENOUGH_SECONDS = 0.3
"""Before that a rate says nothing."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """When the reading of one file began, and when its bytes were through; in seconds."""

    began: float
    read: float | None = None

    def at(self, phase: Phase, now: float) -> "Clock":
        """Return the clock after the file was told to be in a phase."""
        if phase == "waiting":
            return Clock(began=now)
        is_first_after = self.read is None and phase != "reading"
        return replace(self, read=now) if is_first_after else self


class EtaEstimator:
    """Remembers how long files took: their analyses have no bytes that could be counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reading_s = 0.0
        self._later_s = 0.0

    def finished(self, clock: Clock, now: float) -> None:
        """Take note of a file that is done."""
        if clock.read is None:
            return
        with self._lock:
            self._reading_s += clock.read - clock.began
            self._later_s += now - clock.read

    @property
    def later_share(self) -> float | None:
        """How long analyses take, as a multiple of the reading before; None until known."""
        with self._lock:
            return self._later_s / self._reading_s if self._reading_s else None

    def left_s(self, told: ReadProgress, clock: Clock, now: float) -> float | None:
        """Return the seconds until a file is done; None while that cannot be told, or no longer.

        Until the first file is done, analyses count as nothing while bytes are read.
        """
        later_share = self.later_share
        if clock.read is not None:
            expected_s = (clock.read - clock.began) * (later_share or 0.0)
            left_s = expected_s - (now - clock.read)
            return left_s if left_s > 0 else None  # it takes longer than others did
        passed_s = now - clock.began
        if not told.bytes_done or not told.bytes_total or passed_s < ENOUGH_SECONDS:
            return None
        whole_s = passed_s * told.bytes_total / told.bytes_done
        return max(0.0, whole_s * (1 + (later_share or 0.0)) - passed_s)
