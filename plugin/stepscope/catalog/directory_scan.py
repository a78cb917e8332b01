"""Scans of the log directories, page by page, once or periodically on a thread."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from stepscope.base.errors import UnreadableError, in_one_line
from stepscope.base.report import Problem
from stepscope.catalog.log_directories import (
    LogDirectory,
    StampedFile,
    as_problem,
    missing_files_problem,
    stamped,
)
from stepscope.catalog.write_detection import SETTLED_SECONDS
from stepscope.storage import discover

log = logging.getLogger(__name__)

FilesByPath = Mapping[str, StampedFile]
ADOPTION_REST_FACTOR = 10
"""Adopting the listed files takes longer the more there are: at most a tenth of a scan is spent on
it.
"""
FRESH_SECONDS = 2.0
"""Age up to which a scan is not repeated on request."""
SCAN_REST_FACTOR = 10
"""After a scan of one second follows a pause of ten: listing remote folders costs money."""


class DirectoryScan:
    """Scan of the log directories on one thread; other threads may read its progress or cancel."""

    def __init__(
        self, directories: Iterable[LogDirectory], adopt: Callable[[list[StampedFile]], None]
    ) -> None:
        """`adopt` is called with all known files, also during a scan."""
        self.directories = tuple(directories)
        self._adopt = adopt
        self._listings: dict[LogDirectory, FilesByPath] = {}
        self._ordered: tuple[FilesByPath, list[StampedFile]] = ({}, [])
        self._adopts_at = 0.0
        self.file_count = 0
        """Files listed by the current scan or the last one, traces or not."""
        self.problems: tuple[Problem, ...] = ()
        """Log directories that cannot be scanned."""
        self.is_cancelled = False
        """Whether the user cancelled the current scan or the last one."""

    def cancel(self) -> None:
        """Cancel the current scan; the files listed so far remain."""
        self.is_cancelled = True

    def scan(self) -> None:
        """Scan the directories once."""
        self.is_cancelled = False
        self.file_count = 0
        self._adopts_at = 0.0
        self.problems = tuple(
            problem for directory in self.directories for problem in self._scan(directory)
        )
        self._adopt_all()

    def _scan(self, directory: LogDirectory) -> list[Problem]:
        """List a directory; after an error or a cancellation its earlier files remain."""
        before = self._listings.get(directory, {})
        now: dict[str, StampedFile] = {}
        count = self.file_count
        problems: list[Problem] = []
        try:
            pages = discover.page_of_file if directory.is_file else discover.pages
            for page in pages(directory.path, directory.name):
                if self.is_cancelled:
                    break
                self.file_count += page.file_count
                new = {file.path: (file, stamp) for file, stamp in stamped(page.files)}
                now |= new
                is_due = monotonic() >= self._adopts_at
                if is_due and any(before.get(path) != file for path, file in new.items()):
                    self._listings[directory] = {**before, **now}
                    self._adopt_so_far()
            if self.file_count == count and not self.is_cancelled:
                problems = missing_files_problem(directory)
        except UnreadableError as error:
            self._listings[directory] = {**before, **now}
            return [as_problem(error)]
        self._listings[directory] = {**before, **now} if self.is_cancelled else now
        return problems

    def _adopt_so_far(self) -> None:
        began_at = monotonic()
        self._adopt_all()
        now = monotonic()
        self._adopts_at = now + ADOPTION_REST_FACTOR * (now - began_at)

    def _adopt_all(self) -> None:
        files = {path: file for files in self._listings.values() for path, file in files.items()}
        if files != self._ordered[0]:
            self._ordered = files, self._in_order()
        self._adopt(self._ordered[1])

    def _in_order(self) -> list[StampedFile]:
        listings = [self._listings.get(directory, {}) for directory in self.directories]
        files = [
            file
            for listing in listings
            for file in discover.sorted_files(file for file, _ in listing.values())
        ]
        stamps = {path: stamp for listing in listings for path, (_, stamp) in listing.items()}
        return [(file, stamps[file.path]) for file in discover.as_runs(files)]


class PeriodicScan:
    """Scans every few seconds, on a thread, with other periodic work in between."""

    def __init__(
        self, scan: DirectoryScan, *, pause_seconds: float, between_scans: Callable[[], bool]
    ) -> None:
        """`between_scans` returns whether it must be called again within seconds."""
        self.directory_scan = scan
        self._pause_seconds = pause_seconds
        self._between_scans = between_scans
        self._scanned_at: float | None = None
        self._rest_seconds = FRESH_SECONDS
        self._is_requested = threading.Event()
        self._is_over = False

    @property
    def has_scanned(self) -> bool:
        """True once the first scan is complete."""
        return self._scanned_at is not None

    def start(self) -> None:
        """Scan now and every few seconds from now on, on a new thread."""
        threading.Thread(target=self._run, name="stepscope-scan", daemon=True).start()

    def end(self) -> None:
        """End the thread; a running scan ends at its next page."""
        self._is_over = True
        self.directory_scan.cancel()
        self._is_requested.set()

    def rescan_soon(self) -> None:
        """Request a scan, unless the last one is recent or was cancelled by the user."""
        if self.directory_scan.is_cancelled or self._scanned_at is None:
            return
        if monotonic() - self._scanned_at > self._rest_seconds:
            self._is_requested.set()

    def rescan_now(self) -> None:
        """Request a scan, even if the user cancelled the last one."""
        self.directory_scan.is_cancelled = False
        self._is_requested.set()

    def scan(self) -> None:
        """Scan once, on the caller's thread."""
        began_at = monotonic()
        try:
            self.directory_scan.scan()
        finally:
            self._scanned_at = monotonic()
            self._rest_seconds = max(
                FRESH_SECONDS, SCAN_REST_FACTOR * (self._scanned_at - began_at)
            )

    def _run(self) -> None:
        scans_at = 0.0
        while not self._is_over:
            is_due = monotonic() >= scans_at or self._is_requested.is_set()
            self._is_requested.clear()
            is_soon = False
            try:
                if is_due and not self.directory_scan.is_cancelled:
                    self.scan()
                is_soon = self._between_scans()
            except Exception as error:  # the next scan may succeed; a dead thread never does
                log.warning("scanning for traces failed: %s", in_one_line(error))
            if is_due:
                scans_at = monotonic() + max(self._pause_seconds, self._rest_seconds)
            left_s = max(0.0, scans_at - monotonic())
            self._is_requested.wait(timeout=min(left_s, SETTLED_SECONDS) if is_soon else left_s)
