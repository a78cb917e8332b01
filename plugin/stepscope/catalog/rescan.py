"""Looks through the log directories now and again, on a thread of its own."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

from stepscope.base.errors import in_one_line
from stepscope.catalog.directory_scan import DirectoryScan
from stepscope.catalog.write_detection import SETTLED_SECONDS

log = logging.getLogger(__name__)

FRESH_SECONDS = 2.0
"""A look through the folders younger than this is not repeated on demand."""
RESTS_A_LOOK = 10
"""A look that takes a second is followed by ten of rest: to list remote folders has its price."""


class Rescan:
    """When the log directories are looked through."""

    def __init__(
        self,
        directory_scan: DirectoryScan,
        *,
        pause_seconds: float,
        now_and_then: Callable[[], bool],
    ) -> None:
        """`now_and_then` is called between looks; it tells whether it is due in a moment again."""
        self.directory_scan = directory_scan
        self._pause_seconds = pause_seconds
        self._now_and_then = now_and_then
        self._looked_at: float | None = None
        self._rest_seconds = FRESH_SECONDS
        self._is_asked = threading.Event()
        self._is_over = False

    @property
    def has_looked(self) -> bool:
        """Whether the first look is over."""
        return self._looked_at is not None

    def start(self) -> None:
        """Look now, and every few seconds from now on."""
        threading.Thread(target=self._run, name="stepscope-scan", daemon=True).start()

    def end(self) -> None:
        """Look no more; a look that goes on ends at its next page."""
        self._is_over = True
        self.directory_scan.cancel()
        self._is_asked.set()

    def rescan_soon(self) -> None:
        """Look soon, unless that was done a moment ago, or the user ended it."""
        if self.directory_scan.is_cancelled or self._looked_at is None:
            return
        if monotonic() - self._looked_at > self._rest_seconds:
            self._is_asked.set()

    def rescan_now(self) -> None:
        """Look soon, although the user ended it."""
        self.directory_scan.is_cancelled = False
        self._is_asked.set()

    def scan(self) -> None:
        """Look once, on the caller's thread."""
        begun_at = monotonic()
        try:
            self.directory_scan.look()
        finally:
            self._looked_at = monotonic()
            self._rest_seconds = max(FRESH_SECONDS, RESTS_A_LOOK * (self._looked_at - begun_at))

    def _run(self) -> None:
        looks_at = 0.0
        while not self._is_over:
            is_due = monotonic() >= looks_at or self._is_asked.is_set()
            self._is_asked.clear()
            is_soon = False
            try:
                if is_due and not self.directory_scan.is_cancelled:
                    self.scan()
                is_soon = self._now_and_then()
            except Exception as error:  # the next look may go better; a dead thread finds nothing
                log.warning("looking for traces failed: %s", in_one_line(error))
            if is_due:
                looks_at = monotonic() + max(self._pause_seconds, self._rest_seconds)
            left_s = max(0.0, looks_at - monotonic())
            self._is_asked.wait(timeout=min(left_s, SETTLED_SECONDS) if is_soon else left_s)
