"""Estimates of remaining reading time, from measured times."""

import threading
from dataclasses import dataclass, replace

from stepscope.readers.requests import Phase, ReadProgress

ENOUGH_SECONDS = 0.3
"""Reading time below which no rate is estimated."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Times of one file's reading in seconds: its start, and the end of its bytes."""

    began: float
    read: float | None = None

    def at(self, phase: Phase, now: float) -> "Clock":
        """Return the clock after a progress report."""
        if phase == "waiting":
            return Clock(began=now)
        is_first_after = self.read is None and phase != "reading"
        return replace(self, read=now) if is_first_after else self


class EtaEstimator:
    """Estimates the time of analyses, which have no byte counts, from earlier files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reading_s = 0.0
        self._later_s = 0.0

    def finished(self, clock: Clock, now: float) -> None:
        """Add a finished file."""
        if clock.read is None:
            return
        with self._lock:
            self._reading_s += clock.read - clock.began
            self._later_s += now - clock.read

    @property
    def later_share(self) -> float | None:
        """Time of analyses as a multiple of the reading time; None before the first file."""
        with self._lock:
            return self._later_s / self._reading_s if self._reading_s else None

    def left_s(self, progress: ReadProgress, clock: Clock, now: float) -> float | None:
        """Return the seconds until a file is done; None if no estimate is possible.

        Until the first file is done, analyses count as 0.
        """
        later_share = self.later_share
        if clock.read is not None:
            expected_s = (clock.read - clock.began) * (later_share or 0.0)
            left_s = expected_s - (now - clock.read)
            return left_s if left_s > 0 else None  # it takes longer than earlier files
        passed_s = now - clock.began
        if not progress.bytes_done or not progress.bytes_total or passed_s < ENOUGH_SECONDS:
            return None
        whole_s = passed_s * progress.bytes_total / progress.bytes_done
        return max(0.0, whole_s * (1 + (later_share or 0.0)) - passed_s)
