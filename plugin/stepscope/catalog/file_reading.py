"""Reads one file for the catalog: what is known of it afterwards."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from stepscope import storage
from stepscope.base.config import CacheSettings
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

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.summaries.summary import Summary

log = logging.getLogger(__name__)
TellEntry = Callable[[Entry], None]
"""Told how far a file's reading is."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One file that is being read."""

    entry: Entry
    stop: Stop
    is_whole: bool
    """Whether its events are wanted, and not its summary alone."""


@dataclass(frozen=True, kw_only=True)
class FileReading:
    """How files are read."""

    reader: Reader
    summary_reader: Reader
    """For files whose summary alone is wanted."""
    prepare: "Callable[..., Summary] | None"
    advice: "AdviceSettings | None"
    cache: CacheSettings
    pace: EtaEstimator = field(default_factory=EtaEstimator)

    def read(self, task: Task, tell: TellEntry) -> Entry:
        """Return what is known of a file after it was read; whatever is wrong with it, too."""
        return _unless_growing(self._read(task, tell))

    def _read(self, task: Task, tell: TellEntry) -> Entry:
        entry = task.entry
        clock = Clock(began=monotonic())

        def told(now: ReadProgress) -> None:
            nonlocal clock
            clock = clock.at(now.phase, monotonic())
            tell(replace(entry, state=Reading(progress=now, clock=clock)))

        reader = self.reader if task.is_whole else self.summary_reader
        try:
            answer = reader.read(self._order(task), told, task.stop)
        except CancelledError:
            return replace(entry, state=Cancelled())
        except Exception as error:  # one file must not end the reading of the others
            if not isinstance(error, UnreadableError):
                path = entry.file.path
                log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
            problem = as_problem(as_unreadable(entry.file.path, error))
            return replace(entry, state=Unreadable(problem=problem))
        self.pace.finished(clock, monotonic())
        state, facts = _said(answer)
        return replace(entry, state=state, facts=facts)

    def _order(self, task: Task) -> ReadRequest:
        entry = task.entry
        return ReadRequest(
            file=entry.file,
            stamp=entry.stamp,
            steps=self._steps(entry.file.run, is_whole=task.is_whole),
            returns_trace=task.is_whole,
            cache=self.cache,
        )

    def _steps(self, run: str, *, is_whole: bool) -> tuple[Step, ...]:
        """Return what is worked out of a run's recordings when they are read."""
        if self.prepare is None:
            return ()
        task = self.prepare if is_whole else summarise
        if self.advice is not None:
            task = partial(task, settings=self.advice.for_run(run))
        return (("analysing", analyse), ("advising", task))


def _unless_growing(entry: Entry) -> Entry:
    """Return what is known of a file, or that it is still written, where its end is missing."""
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
    """Tell whether a file that was read ends in the middle; an empty one does."""
    # Imported here because it brings pandas, which TensorBoard's start should not wait for.
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


def _said(answer: ReadResult) -> tuple[State, Facts]:
    trace = answer.trace
    if trace is None:
        return Summarised(), facts_of(answer.prepared)
    facts = Facts(
        rank=trace.rank,
        is_synthetic=trace.is_synthetic,
        events=len(trace),
        summary=answer.prepared,
    )
    return Ready(trace=trace), facts
