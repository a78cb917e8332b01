"""The data set of summaries: what was once read of a run is found again without reading it.

`<place>/v<version>/<run id>/part-<settings>-<digest>.parquet`: a row a recording, files of many
recordings each. Several programs may use a place at once: files are never changed, only added and
put together to fewer, and of several rows on one recording the newest counts. Nothing that goes
wrong here costs an answer: it costs a line in the log, and the time to read the traces.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TypeVar

from stepscope.advice import AdviceSettings
from stepscope.advice.settings import DEFAULT
from stepscope.base import urls
from stepscope.base.config import SummarySettings
from stepscope.base.errors import in_one_line
from stepscope.storage import FileStamp, cache_folder
from stepscope.storage.cache_folder import user_cache_folder
from stepscope.storage.discover import TraceFile
from stepscope.summaries.cache_key import FileLocations, settings_key
from stepscope.summaries.parquet_files import PATTERN
from stepscope.summaries.row_tables import as_rows, as_table, newest
from stepscope.summaries.run_folder import RunFolder
from stepscope.summaries.summary import Summary
from stepscope.summaries.summary_rows import FOLDER, Row, WholeRow, columns_of, row_of, summary_of

log = logging.getLogger("stepscope.summaries")

MOST_WAITING = 128
"""Summaries that wait to be written."""
MOST_SECONDS = 30.0
"""How long the first of them waits, where others come."""

Files = Iterable[tuple[TraceFile, FileStamp]]
"""Recordings, and the state of each file."""
T = TypeVar("T")


class Store:
    """Finds and keeps the summaries of recordings, for one who has these settings of advice.

    Any number of threads may use it. What is kept is written by and by; `flush` writes the rest.
    """

    def __init__(self, settings: SummarySettings, rules: AdviceSettings = DEFAULT) -> None:
        self._settings = settings
        self._rules = rules
        self._places = FileLocations()
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()
        self._waiting: dict[RunFolder, list[WholeRow]] = {}
        self._waits_since = 0.0

    def is_for(self, count: int) -> bool:
        """Tell whether the recordings of a run of so many are kept."""
        return self._settings.is_for(count)

    def find(self, files: Files, *, with_samples: bool = False) -> dict[str, Summary]:
        """Return the summaries of those files that are known in this state, by the files' ids.

        Without samples, which take the most time, `Summary.sample` is None.
        """
        if self._settings.location is None:
            return {}
        by_folder: dict[RunFolder, dict[str, tuple[TraceFile, FileStamp]]] = {}
        for file, stamp in files:
            own = by_folder.setdefault(self._folder(file), {})
            own[self._places.file_key(file)] = (file, stamp)
        found: dict[str, Summary] = {}
        for folder, own in by_folder.items():
            read = partial(self._read, folder, own, WholeRow if with_samples else Row)
            found |= _tried(folder.path, "read", read) or {}
        return found

    def add(self, file: TraceFile, stamp: FileStamp | None, summary: Summary) -> bool:
        """Keep the summary of a file as it was when it had this stamp; tell whether it can be."""
        if self._settings.location is None or stamp is None or not _holds(stamp, summary):
            return False
        folder = self._folder(file)
        make = partial(row_of, self._places, file, stamp, summary, folder.settings)
        if (row := _tried(folder.path, "written", make)) is None:
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
        """Write what waits to be written."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._waits_since = 0.0
        for folder, rows in waiting.items():
            _tried(folder.path, "written", partial(_write, folder, rows))
        if waiting and not urls.is_remote(self._place):
            bound = partial(cache_folder.bound, self._place, PATTERN, self._settings.bound_bytes)
            _tried(self._place, "removed", bound)

    @property
    def _place(self) -> str:
        return self._settings.location or urls.join(user_cache_folder(), "summaries")

    def _folder(self, file: TraceFile) -> RunFolder:
        if file.run not in self._keys:
            self._keys[file.run] = settings_key(self._rules.for_run(file.run))
        path = urls.tidy(self._place)
        for name in (FOLDER, self._places.run_id(file)):
            path = urls.join(path, name)
        return RunFolder(path=path, settings=self._keys[file.run])

    def _read(
        self, folder: RunFolder, files: Mapping[str, tuple[TraceFile, FileStamp]], of: type[Row]
    ) -> dict[str, Summary]:
        wanted = {key: stamp for key, (_, stamp) in files.items()}
        rules = {run: self._rules.for_run(run) for run in {file.run for file, _ in files.values()}}
        found = {}
        for row in as_rows(newest(folder.table(columns_of(of)), wanted), of):
            file, _ = files[row.file]
            make = partial(summary_of, row, file, rules[file.run])
            if (summary := _tried(folder.path, "used", make)) is not None:
                found[file.id] = summary
        return found


def _holds(stamp: FileStamp, summary: Summary) -> bool:
    """Tell whether a summary is what a file in this state always says."""
    is_told_apart = bool(stamp.modified_ns or stamp.tag)  # its size alone would not do
    # A rule may fail for want of memory.
    return is_told_apart and all(each.status != "failed" for each in summary.advice.outcomes)


def _write(folder: RunFolder, rows: list[WholeRow]) -> None:
    folder.add(as_table(rows))
    folder.tidy(newest)


def _tried(place: str, doing: str, work: Callable[[], T]) -> T | None:
    """Return what some work gives; None, and a line in the log, where it fails."""
    try:
        return work()
    except Exception as error:  # the traces can be read, whatever is wrong here
        shown = urls.redacted(place)
        say_once(f"{shown}: summaries there cannot be {doing} ({in_one_line(error, place)})")
    return None


@cache
def say_once(message: str) -> None:
    """Say it once, however many recordings it is about."""
    log.warning("%s", message)
