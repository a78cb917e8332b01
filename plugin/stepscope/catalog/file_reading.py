"""Reading of one file for the catalog: its entry before and after."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from stepscope import storage
from stepscope.base.errors import UnreadableError, as_unreadable, in_one_line
from stepscope.base.urls import redacted
from stepscope.catalog import write_detection
from stepscope.catalog.file_state import (
    Cancelled,
    Entry,
    Facts,
    Growing,
    Reading,
    Ready,
    State,
    Summarised,
    Unreadable,
    facts_of,
)
from stepscope.catalog.log_directories import as_problem
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.eta import Clock, EtaEstimator
from stepscope.readers.pool import Reader
from stepscope.readers.requests import (
    CancelledError,
    ReadProgress,
    ReadRequest,
    ReadResult,
    Step,
    Stop,
)
from stepscope.readers.tasks import analyse, summarise

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReadingTask:
    """One file that is being read."""

    entry: Entry
    stop: Stop
    needs_events: bool
    """Whether its events are needed, not only its summary."""


class FileReader:
    """Reads files, and measures how long that takes."""

    def __init__(self, reader: Reader, options: CatalogOptions) -> None:
        self._reader = reader
        self._options = options
        self.eta = EtaEstimator()

    def read(self, task: ReadingTask, on_progress: Callable[[Entry], None]) -> Entry:
        """Return a file's entry after its reading, successful or not."""
        return _unless_growing(self._read(task, on_progress))

    def _read(self, task: ReadingTask, on_progress: Callable[[Entry], None]) -> Entry:
        entry = task.entry
        clock = Clock(began=monotonic())

        def report(progress: ReadProgress) -> None:
            nonlocal clock
            clock = clock.at(progress.phase, monotonic())
            on_progress(replace(entry, state=Reading(progress=progress, clock=clock)))

        reader = self._reader
        if not task.needs_events and self._options.summary_reader is not None:
            reader = self._options.summary_reader
        try:
            result = reader.read(self._request(task), report, task.stop)
        except CancelledError:
            return replace(entry, state=Cancelled())
        except Exception as error:  # one file must not stop the reading of the others
            if not isinstance(error, UnreadableError):
                path = entry.file.path
                log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
            problem = as_problem(as_unreadable(entry.file.path, error))
            return replace(entry, state=Unreadable(problem=problem))
        self.eta.finished(clock, monotonic())
        state, facts = _state_and_facts(result)
        return replace(entry, state=state, facts=facts)

    def _request(self, task: ReadingTask) -> ReadRequest:
        entry = task.entry
        return ReadRequest(
            file=entry.file,
            stamp=entry.stamp,
            steps=self._steps(entry.file.run, needs_events=task.needs_events),
            returns_trace=task.needs_events,
            cache=self._options.settings.cache,
        )

    def _steps(self, run: str, *, needs_events: bool) -> tuple[Step, ...]:
        options = self._options
        if options.prepare is None:
            return ()
        prepare = options.prepare if needs_events else summarise
        if options.advice is not None:
            prepare = partial(prepare, settings=options.advice.for_run(run))
        return (("analysing", analyse), ("advising", prepare))


def _unless_growing(entry: Entry) -> Entry:
    """Return an entry, as growing if the file was read while being written."""
    is_cut_off = _is_cut_off(entry)
    if not is_cut_off and not isinstance(entry.state, Unreadable):
        return entry
    try:
        now = storage.stamp(entry.file.path)
    except (OSError, UnreadableError):
        return entry
    if not (left_s := write_detection.still_s(entry, now, is_cut_off=is_cut_off)):
        return entry
    return replace(
        entry,
        stamp=now,
        state=Growing(due_at=monotonic() + left_s),
        facts=None,
        seen_at=entry.seen_at if now == entry.stamp else monotonic(),
        cut_off_count=entry.cut_off_count + 1,
    )


def _is_cut_off(entry: Entry) -> bool:
    """Return whether a file lacks its end, as an empty file does."""
    # Imported here because it imports pandas, which would delay TensorBoard's start.
    from stepscope.ingest.reader import EMPTY, ENDS_AT_ONCE
    from stepscope.model.trace import TRUNCATIONS

    if isinstance(entry.state, Unreadable):
        return entry.state.problem.message in {EMPTY, ENDS_AT_ONCE}
    if not isinstance(entry.state, Ready | Summarised):
        return False
    if isinstance(entry.state, Ready):
        return entry.state.trace.is_truncated
    advice = entry.facts.advice if entry.facts is not None else None
    return advice is not None and any(item.kind in TRUNCATIONS for item in advice.worker.health)


def _state_and_facts(result: ReadResult) -> tuple[State, Facts]:
    trace = result.trace
    if trace is None:
        return Summarised(), facts_of(result.prepared)
    facts = Facts(
        rank=trace.rank,
        is_synthetic=trace.is_synthetic,
        events=len(trace),
        summary=result.prepared,
    )
    return Ready(trace=trace), facts
