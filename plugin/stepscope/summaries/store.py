"""The persistent store of summaries, so that traces are not read again.

`<location>/v<version>/<run id>/part-<settings>-<digest>.parquet`: a row per trace, many rows per
file. Several programs may use a location at once: files are never changed, only added and merged,
and the newest row of a trace counts. A failure is logged, and the traces are read instead.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from stepscope.advice import AdviceSettings
from stepscope.advice.settings import DEFAULT
from stepscope.base import urls
from stepscope.base.config import SummarySettings
from stepscope.base.errors import in_one_line
from stepscope.storage import FileStamp, cache_folder
from stepscope.storage.cache_folder import user_cache_folder, warn_once
from stepscope.storage.discover import TraceFile
from stepscope.summaries.cache_key import FileLocations, settings_key
from stepscope.summaries.parquet_files import PATTERN
from stepscope.summaries.row_tables import as_rows, as_table, newest
from stepscope.summaries.run_folder import RunFolder
from stepscope.summaries.summary import Summary
from stepscope.summaries.summary_rows import FOLDER, Row, WholeRow, columns_of, row_of, summary_of

log = logging.getLogger("stepscope.summaries")

MOST_WAITING = 128
"""Number of unwritten summaries at which they are written."""
MOST_SECONDS = 30.0
"""Longest time until unwritten summaries are written, if more are added."""

Files = Iterable[tuple[TraceFile, FileStamp]]
T = TypeVar("T")


class Store:
    """Finds and adds the summaries of traces, for these settings of advice.

    Any number of threads may use it. Summaries are written in batches; `flush` writes the rest.
    """

    def __init__(self, settings: SummarySettings, rules: AdviceSettings = DEFAULT) -> None:
        self._settings = settings
        self._rules = rules
        self._locations = FileLocations()
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()
        self._waiting: dict[RunFolder, list[WholeRow]] = {}
        self._waits_since = 0.0

    def is_for(self, count: int) -> bool:
        """Return whether summaries of runs with this number of traces are stored."""
        return self._settings.is_for(count)

    def find(self, files: Files, *, with_samples: bool = False) -> dict[str, Summary]:
        """Return the stored summaries of files in this state, by the files' ids.

        Without samples, which take the most time, `Summary.sample` is None.
        """
        if self._settings.location is None:
            return {}
        by_folder: dict[RunFolder, dict[str, tuple[TraceFile, FileStamp]]] = {}
        for file, stamp in files:
            files_of_run = by_folder.setdefault(self._folder(file), {})
            files_of_run[self._locations.file_key(file)] = (file, stamp)
        summaries: dict[str, Summary] = {}
        for folder, files_of_run in by_folder.items():
            read = partial(self._read, folder, files_of_run, WholeRow if with_samples else Row)
            summaries |= _try(folder.path, "read", read) or {}
        return summaries

    def add(self, file: TraceFile, stamp: FileStamp | None, summary: Summary) -> bool:
        """Add the summary of a file with this stamp; return whether it can be stored."""
        if self._settings.location is None or stamp is None or not _is_valid(stamp, summary):
            return False
        folder = self._folder(file)
        make = partial(row_of, self._locations, file, stamp, summary, folder.settings)
        if (row := _try(folder.path, "written", make)) is None:
            return False
        with self._lock:
            self._waits_since = self._waits_since or time.monotonic()
            self._waiting.setdefault(folder, []).append(row)
            count = sum(map(len, self._waiting.values()))
            is_due = time.monotonic() - self._waits_since > MOST_SECONDS
        if count >= MOST_WAITING or is_due:
            self.flush()
        return True

    def flush(self) -> None:
        """Write the summaries that have not been written yet."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._waits_since = 0.0
        for folder, rows in waiting.items():
            _try(folder.path, "written", partial(_write, folder, rows))
        if waiting and not urls.is_remote(self._location):
            bound = partial(cache_folder.bound, self._location, PATTERN, self._settings.bound_bytes)
            _try(self._location, "removed", bound)

    @property
    def _location(self) -> str:
        return self._settings.location or urls.join(user_cache_folder(), "summaries")

    def _folder(self, file: TraceFile) -> RunFolder:
        if file.run not in self._keys:
            self._keys[file.run] = settings_key(self._rules.for_run(file.run))
        path = urls.tidy(self._location)
        for name in (FOLDER, self._locations.run_id(file)):
            path = urls.join(path, name)
        return RunFolder(path=path, settings=self._keys[file.run])

    def _read(
        self, folder: RunFolder, files: Mapping[str, tuple[TraceFile, FileStamp]], of: type[Row]
    ) -> dict[str, Summary]:
        stamps = {key: stamp for key, (_, stamp) in files.items()}
        rules = {run: self._rules.for_run(run) for run in {file.run for file, _ in files.values()}}
        summaries = {}
        for row in as_rows(newest(folder.table(columns_of(of)), stamps), of):
            file, _ = files[row.file]
            make = partial(summary_of, row, file, rules[file.run])
            if (summary := _try(folder.path, "used", make)) is not None:
                summaries[file.id] = summary
        return summaries


def _is_valid(stamp: FileStamp, summary: Summary) -> bool:
    """Return whether reading the file again would give the same summary."""
    is_identified = bool(stamp.modified_ns or stamp.tag)  # the size alone does not identify a state
    # A rule may fail for lack of memory.
    return is_identified and all(outcome.status != "failed" for outcome in summary.advice.outcomes)


def _write(folder: RunFolder, rows: list[WholeRow]) -> None:
    folder.add(as_table(rows))
    folder.tidy(newest)


def _try(path: str, doing: str, work: Callable[[], T]) -> T | None:
    """Return the result of some work; if it fails, log the error and return None."""
    try:
        return work()
    except Exception as error:  # the traces can still be read
        reason = in_one_line(error, path)
        warn_once(log, f"{urls.redacted(path)}: summaries there cannot be {doing} ({reason})")
    return None
