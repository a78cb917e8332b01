"""What is remembered of files from one start to the next: their summaries."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from stepscope.base.errors import in_one_line
from stepscope.catalog.file_state import Entry
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.summaries.summary import Summary

log = logging.getLogger(__name__)
Stamped = tuple[TraceFile, FileStamp]


class SummaryStore(Protocol):
    """Where summaries are kept from one start to the next; what fails in it costs no answer."""

    def is_for(self, count: int) -> bool:
        """Tell whether summaries of runs of so many files are kept."""

    def find(
        self, files: Sequence[Stamped], *, with_samples: bool = False
    ) -> "Mapping[str, Summary]":
        """Return what is kept of files as they are now, by the files' ids."""

    def add(self, file: TraceFile, stamp: FileStamp | None, summary: "Summary") -> bool:
        """Keep a summary, now or soon; tell whether it can be kept."""

    def flush(self) -> None:
        """Keep now what was not kept yet."""


class SummaryCache:
    """Looks up summaries and has them kept; whatever fails in that costs a line in the log."""

    def __init__(
        self, open_store: Callable[[], SummaryStore] | None, count_of_run: Callable[[str], int]
    ) -> None:
        """`open_store` is called when the first summary is wanted: it imports pandas."""
        self._open_store = open_store
        self._count_of_run = count_of_run
        self._store: SummaryStore | None = None
        self._lock = threading.Lock()

    @property
    def is_anywhere(self) -> bool:
        """Whether summaries are kept at all."""
        return self._open_store is not None

    @property
    def is_open(self) -> bool:
        """Whether a summary was wanted already."""
        return self._store is not None

    def find(
        self, entries: Iterable[Entry], *, with_samples: bool = False
    ) -> "Mapping[str, Summary]":
        """Return what another start left of files, by their ids; it takes as long as it takes."""
        try:
            files = [(each.file, each.stamp) for each in entries if self._store_of(each)]
            if self._store is None or not files:
                return {}
            return self._store.find(files, with_samples=with_samples)
        except Exception as error:  # then they are read
            log.warning("looking up summaries failed: %s", in_one_line(error))
            return {}

    def kept(self, entry: Entry) -> Entry:
        """Have a file's summary kept for the next start; let go of what can be had from there."""
        summary = entry.facts.summary if entry.facts is not None else None
        if summary is None or summary.sample is None or entry.facts is None:
            return entry
        try:
            store = self._store_of(entry)
            if store is None or not store.add(entry.file, entry.stamp, summary):
                return entry
        except Exception as error:  # it is read again at the next start
            log.warning("keeping a summary failed: %s", in_one_line(error))
            return entry
        lean = replace(summary, sample=None)
        return replace(entry, facts=replace(entry.facts, summary=lean))

    def flush(self) -> None:
        """Have written what waits to be written."""
        if self._store is not None:
            with suppress(Exception):  # it logs what it cannot do
                self._store.flush()

    def _store_of(self, entry: Entry) -> SummaryStore | None:
        """Return where the summary of a file is kept; None where it is kept nowhere."""
        if self._open_store is None:
            return None
        with self._lock:
            self._store = self._store or self._open_store()
        return self._store if self._store.is_for(self._count_of_run(entry.file.run_id)) else None
