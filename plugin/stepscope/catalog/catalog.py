"""The catalog of runs and trace files; no call waits for a scan or a reading.

A thread scans the log directories (`directory_scan.py`), readers convert files into traces and
summaries in the background (`read_queue.py`), and everything stays within one memory budget
(`trace_cache.py`). Heavy modules are imported with the first reading, so that TensorBoard's start
is not slowed.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope import storage
from stepscope.base.errors import UnreadableError
from stepscope.base.report import Problem
from stepscope.catalog.directory_scan import DirectoryScan, PeriodicScan
from stepscope.catalog.file_index import FileIndex
from stepscope.catalog.file_state import Cancelled, Entry, Growing, Queued, Reading, Unreadable
from stepscope.catalog.log_directories import LogDirectory, stamped
from stepscope.catalog.options import CatalogOptions
from stepscope.catalog.read_queue import ReadQueue
from stepscope.catalog.trace_cache import TraceCache
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.summaries.summary import Summary


class Catalog:
    """The trace files of some log directories, read in the background; thread-safe."""

    def __init__(
        self, directories: Iterable[LogDirectory], options: CatalogOptions | None = None
    ) -> None:
        options = options or CatalogOptions()
        self.directories = tuple(directories)
        self.settings = options.settings
        self.advice = options.advice
        self._files = FileIndex()
        self._traces = TraceCache(self._files, options.settings.memory_bytes)
        self._queue = ReadQueue(self._files, self._traces, options)
        self.eta = self._queue.eta
        """Estimator of reading times."""
        self.directory_scan = DirectoryScan(self.directories, self._queue.adopt)
        self._scans = PeriodicScan(
            self.directory_scan,
            pause_seconds=options.settings.rescan_seconds,
            between_scans=self._between_scans,
        )

    def watch(self) -> None:
        """Scan the directories now and every few seconds, on a new thread."""
        self._scans.start()

    def close(self) -> None:
        """Stop scanning, and write summaries that have not been written yet."""
        self._scans.end()
        self._queue.store_late()
        self._queue.summaries.flush()

    def adopt(self, files: Iterable[TraceFile]) -> None:
        """Replace the files by these, for a catalog without log directories."""
        self._queue.adopt(stamped(files))

    def start_reading(self) -> None:
        """Read the files, now and when new ones appear."""
        self._queue.start()

    @property
    def has_traces(self) -> bool:
        """True once any trace file was listed."""
        return bool(len(self._files))

    @property
    def is_scanning(self) -> bool:
        """True until the first scan is complete."""
        return not self._scans.has_scanned

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Log directories that cannot be scanned."""
        return self.directory_scan.problems

    def entries(self) -> tuple[Entry, ...]:
        """Return the entry of each file, by run, worker and time."""
        with self._files.lock:
            return tuple(self._files)

    def queue(self) -> tuple[str, ...]:
        """Return the ids of the queued files, in reading order."""
        with self._files.lock:
            return tuple(entry.file.id for entry in self._files.queued())

    def state_key(self) -> tuple[object, ...] | None:
        """Return a value that changes with the catalog; None while a file is being read."""
        with self._files.lock:
            if self._files.count(Reading):
                return None
            scan = self.directory_scan
            scan_state = (scan.file_count, scan.is_cancelled, scan.problems)
            return self._files.version, self.is_scanning, *scan_state

    def scan(self) -> None:
        """Scan the directories once, on the caller's thread."""
        self._scans.scan()

    def rescan_soon(self) -> None:
        """Request a scan, unless the last one is recent or was cancelled."""
        self._scans.rescan_soon()

    def cancel_scan(self) -> None:
        """Cancel the current scan, and start no other until `rescan_now`."""
        self.directory_scan.cancel()

    def rescan_now(self) -> None:
        """Request a scan, even if the last one was cancelled."""
        self._scans.rescan_now()

    def file(self, identity: str) -> Entry:
        """Return a file's entry; from now on the file and its run are read first.

        Raises:
            UnknownNameError: No file has that id.
        """
        with self._files.lock:
            self._queue.request(self._files.entry(identity))
            self._traces.shrink()
            return self._files.entry(identity)

    def run(self, identity: str) -> tuple[Entry, ...]:
        """Return the entries of a run's files; from now on they are read first.

        Evicted events are not read again: a run is served from its summaries.

        Raises:
            UnknownNameError: No run has that id.
        """
        with self._files.lock:
            entries = self._files.run(identity)
            self._files.request(identity)
            self._queue.start()
            return entries

    def cancel(self, identity: str) -> None:
        """Do not read a file, or cancel its reading; a file already read is unchanged.

        Raises:
            UnknownNameError: No file has that id.
        """
        with self._files.lock:
            entry = self._files.entry(identity)
            if isinstance(entry.state, Queued | Growing | Reading):
                self._files.put(replace(entry, state=Cancelled()))
        self._queue.stop(identity)

    def read_again(self, identity: str) -> None:
        """Read a file whose reading was cancelled or failed, before all others.

        Raises:
            UnknownNameError: No file has that id.
        """
        with self._files.lock:
            entry = self._files.entry(identity)
            self._queue.request(entry)
            if isinstance(entry.state, Cancelled | Unreadable | Growing):
                self._queue.enqueue(entry)

    def read_run_again(self, identity: str) -> None:
        """Read the files of a run whose reading was cancelled or failed, before all others.

        Raises:
            UnknownNameError: No run has that id.
        """
        with self._files.lock:
            for entry in self.run(identity):
                if isinstance(entry.state, Cancelled | Unreadable):
                    self._queue.enqueue(entry)

    def with_samples(self, entries: Iterable[Entry]) -> "Mapping[str, Summary]":
        """Return the stored summaries of files with their samples, by the files' ids."""
        return self._queue.summaries.find(entries, with_samples=True)

    def release_memory(self, missing_bytes: int) -> None:
        """Evict traces until a file that needs this much more memory can be read."""
        self._traces.release(missing_bytes)

    def reserve_memory(self, bytes_: int) -> None:
        """Set the memory that API caches take from the budget."""
        self._traces.reserve(bytes_)

    def check_growing(self) -> None:
        """Queue the growing files that have settled."""
        with self._files.lock:
            growing = self._files.growing()
        for entry in growing:
            with suppress(OSError, UnreadableError):  # the next scan reports it
                stamp = storage.stamp(entry.file.path)
                with self._files.lock:
                    if self._files.has_settled(entry, stamp):
                        self._queue.enqueue(entry)

    def _between_scans(self) -> bool:
        self.check_growing()
        self._queue.store_late()
        self._queue.summaries.flush()
        with self._files.lock:
            return bool(self._files.growing())
