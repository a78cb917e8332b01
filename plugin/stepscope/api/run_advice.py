"""Advice on a run: merged from its files, at a limited rate while they are read."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from time import monotonic

import flask
import msgspec

from stepscope.advice import run_report
from stepscope.advice.run_rules import Unread
from stepscope.advice.settings import DEFAULT
from stepscope.api import encoding, http_errors
from stepscope.api.computations import Computations
from stepscope.api.dispatch import trace_advice, unusable
from stepscope.api.endpoint import RunQuery
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import RunReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Cancelled, Entry, Queued, Reading, Ready, Unreadable

CACHED_RUNS = 4
RESTS_A_MERGE = 3
"""Pause after a merge while files are read, in durations of the merge."""
MOST_REST_SECONDS = 10.0


class AdviceQuery(RunQuery, frozen=True, kw_only=True):
    """The run, and optionally one of its traces."""

    trace: str = ""
    """Id of one of its traces: outcomes of the others are left out."""


@dataclass(frozen=True, kw_only=True)
class _Merged:
    state: str
    """Tag of the merged files."""
    report: RunReport
    due_at: float
    """Earliest time of the next merge while files are read."""


class RunAdvice:
    """Merged advice of the last requested runs."""

    def __init__(self, catalog: Catalog, computations: Computations) -> None:
        self._catalog = catalog
        self._computations = computations
        self._merged: OrderedDict[str, _Merged] = OrderedDict()
        self._lock = Lock()

    def respond(self, run: str, trace: str = "") -> flask.Response:
        """Return a run's advice; for a trace, its outcomes and those of the run.

        Raises:
            UnknownNameError: the run does not exist, or has no such trace.
            RefusalError: no file is read yet, or none can be read.
        """
        entries = self._catalog.run(run)
        if trace and all(entry.file.id != trace for entry in entries):
            msg = f"the run has no trace with the id {trace!r}: it may have been moved or deleted"
            raise UnknownNameError(msg)
        merged = self._current(run, entries)
        server = flask.current_app.config[encoding.SERVER]
        entity_tag = encoding.tag(server, run, trace, merged.state)
        if encoding.client_has(entity_tag):
            return encoding.revalidated(encoding.not_modified(), entity_tag)
        report = _of_trace(merged.report, trace) if trace else merged.report
        return encoding.revalidated(encoding.encoded(report), entity_tag)

    def _current(self, run: str, entries: tuple[Entry, ...]) -> _Merged:
        advised = _advised(entries)
        unread = unread_files(entries, advised)
        state = encoding.tag(
            entries[0].file.run,
            *((entry.file.id, entry.file.span, entry.stamp) for entry in advised),
            *unread.unreadable,
            unread.awaited_count,
        )
        is_coming = any(isinstance(entry.state, Queued | Reading) for entry in entries)

        def merge() -> _Merged:  # while this one waited, another may have been made
            return self._last(run, state, is_coming=is_coming) or self._merge(
                state, advised, unread
            )

        last = self._last(run, state, is_coming=is_coming)
        if last is not None:
            return last
        merged = self._computations.result("long", ("advice", run, state), merge)
        with self._lock:
            self._merged[run] = merged
            while len(self._merged) > CACHED_RUNS:
                self._merged.popitem(last=False)
        return merged

    def _last(self, run: str, state: str, *, is_coming: bool) -> _Merged | None:
        """Return the last merge, unless another one is due."""
        with self._lock:
            last = self._merged.get(run)
            if last is None:
                return None
            self._merged.move_to_end(run)
            is_current = last.state == state or (is_coming and monotonic() < last.due_at)
            return last if is_current else None

    def _merge(self, state: str, advised: tuple[Entry, ...], unread: Unread) -> _Merged:
        begun_at = monotonic()
        settings, name = self._catalog.advice, advised[0].file.run
        advice = [trace_advice(self._catalog, entry) for entry in advised]
        report = run_report(
            name,
            advice,
            DEFAULT if settings is None else settings,
            unreadable=unread.unreadable,
            awaited_count=unread.awaited_count,
        )
        now = monotonic()
        return _Merged(state=state, report=report, due_at=now + rest_seconds(now - begun_at))


def _of_trace(report: RunReport, trace: str) -> RunReport:
    """Return a run's advice with the outcomes of one trace and of the run."""
    return msgspec.structs.replace(
        report,
        workers=tuple(worker for worker in report.workers if worker.trace == trace),
        outcomes=tuple(outcome for outcome in report.outcomes if outcome.trace in {"", trace}),
    )


def rest_seconds(merge_seconds: float) -> float:
    """Return the pause after a merge while files are read."""
    return min(RESTS_A_MERGE * merge_seconds, MOST_REST_SECONDS)


def unread_files(entries: tuple[Entry, ...], advised: tuple[Entry, ...]) -> Unread:
    """Return the unreadable files of a run, and the number of those that are not read yet."""
    paths = [entry.file.path for entry in entries if isinstance(entry.state, Unreadable)]
    return Unread(
        unreadable=tuple(map(urls.name, paths)),
        awaited_count=len(entries) - len(advised) - len(paths),
    )


def _advised(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the files with advice; files that are being read follow later."""
    advised = tuple(
        entry
        for entry in entries
        if isinstance(entry.state, Ready)
        or (entry.facts and entry.facts.advice and not isinstance(entry.state, Unreadable))
    )
    if advised:
        return advised
    problems = [entry.state.problem for entry in entries if isinstance(entry.state, Unreadable)]
    cancelled_count = sum(isinstance(entry.state, Cancelled) for entry in entries)
    if len(problems) == len(entries):
        raise unusable(problems[0])
    if len(problems) + cancelled_count == len(entries):
        raise http_errors.cancelled(entries[0].file.run)
    raise http_errors.still_loading(entries[0].file.run)
