"""Cache of persistent summaries: looked up before a file is read, stored after."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from stepscope.base.errors import in_one_line
from stepscope.catalog.file_state import Entry
from stepscope.catalog.log_directories import StampedFile
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.summaries.summary import Summary

log = logging.getLogger(__name__)


class SummaryStore(Protocol):
    """Persistent store of summaries (`summaries.store.Store`)."""

    def is_for(self, count: int) -> bool:
        """Return whether summaries of runs with this number of files are stored."""

    def find(
        self, files: Sequence[StampedFile], *, with_samples: bool = False
    ) -> "Mapping[str, Summary]":
        """Return the stored summaries of files in their current state, by the files' ids."""

    def add(self, file: TraceFile, stamp: FileStamp | None, summary: "Summary") -> bool:
        """Store a summary, now or at the next flush; return whether it can be stored."""

    def flush(self) -> None:
        """Write the summaries that have not been written yet."""


class SummaryCache:
    """Looks up and stores summaries; if that fails, the failure is logged and the file is read."""

    def __init__(
        self, open_store: Callable[[], SummaryStore] | None, run_size: Callable[[str], int]
    ) -> None:
        """`open_store` imports pandas and pyarrow, and is called at the first use."""
        self._open_store = open_store
        self._run_size = run_size
        self._store: SummaryStore | None = None
        self._lock = threading.Lock()

    @property
    def is_enabled(self) -> bool:
        """True if there is a store."""
        return self._open_store is not None

    @property
    def is_open(self) -> bool:
        """True if the store is open."""
        return self._store is not None

    def find(
        self, entries: Iterable[Entry], *, with_samples: bool = False
    ) -> "Mapping[str, Summary]":
        """Return the stored summaries of files, by the files' ids; this may take seconds."""
        try:
            files = [(entry.file, entry.stamp) for entry in entries if self._store_of(entry)]
            if self._store is None or not files:
                return {}
            return self._store.find(files, with_samples=with_samples)
        except Exception as error:  # the files are read instead
            log.warning("looking up summaries failed: %s", in_one_line(error))
            return {}

    def stored(self, entry: Entry) -> Entry:
        """Store a file's summary; return its entry without the parts that the store can restore."""
        summary = entry.facts.summary if entry.facts is not None else None
        if summary is None or summary.sample is None or entry.facts is None:
            return entry
        try:
            store = self._store_of(entry)
            if store is None or not store.add(entry.file, entry.stamp, summary):
                return entry
        except Exception as error:  # the file is read again at the next start
            log.warning("storing a summary failed: %s", in_one_line(error))
            return entry
        lean = replace(summary, sample=None)
        return replace(entry, facts=replace(entry.facts, summary=lean))

    def flush(self) -> None:
        """Write the summaries that have not been written yet."""
        if self._store is not None:
            with suppress(Exception):  # the store logs its failures
                self._store.flush()

    def _store_of(self, entry: Entry) -> SummaryStore | None:
        """Return the store if it is for runs of this size."""
        with self._lock:
            if self._store is None and self._open_store is not None:
                try:
                    self._store = self._open_store()
                except Exception as error:  # the files are read instead
                    self._open_store = None
                    log.warning("summaries are not stored: %s", in_one_line(error))
            store = self._store
        is_for = store is not None and store.is_for(self._run_size(entry.file.run_id))
        return store if is_for else None
