"""The advice on a run: put together of what is known of its files, but not anew for each."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from time import monotonic

import flask
import msgspec

from stepscope.advice import TraceAdvice, advise_trace, run_report
from stepscope.advice.run_rules import Unread
from stepscope.advice.settings import DEFAULT
from stepscope.api import encoding, http_errors
from stepscope.api.dispatch import ready, unusable
from stepscope.api.endpoint import RunQuery
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import RunReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Cancelled, Entry, Queued, Reading, Ready, Unreadable

KEPT_RUNS = 4
RESTS_A_MERGE = 3
"""While files come in, a merge that takes a second is followed by three without one."""
MOST_REST_SECONDS = 10.0


class AdviceQuery(RunQuery, frozen=True, kw_only=True):
    """The parameters of a run's advice."""

    trace: str = ""
    """The id of one of its recordings, where outcomes of the others are to be left out."""


@dataclass(frozen=True, kw_only=True)
class _Merged:
    standing: str
    """Of what it was made."""
    report: RunReport
    due_at: float
    """Before that it is not made anew while files come in."""


class RunAdvice:
    """Answers with the advice on runs."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._merged: OrderedDict[str, _Merged] = OrderedDict()
        self._lock = Lock()

    def answer(self, run: str, trace: str = "") -> flask.Response:
        """Answer with a run's advice; of a recording, only what it says and what holds for all.

        Raises:
            UnknownNameError: there is no such run, or no such recording in it.
            RefusalError: none of its files was read yet, or none can be.
        """
        entries = self._catalog.run(run)
        if trace and all(entry.file.id != trace for entry in entries):
            msg = f"the run has no trace with the id {trace!r}: it may have been moved or deleted"
            raise UnknownNameError(msg)
        now = self._now(run, entries)
        server = flask.current_app.config[encoding.SERVER]
        entity_tag = encoding.tag(server, run, trace, now.standing)
        if encoding.client_has(entity_tag):
            return encoding.revalidated(encoding.not_modified(), entity_tag)
        report = _of_recording(now.report, trace) if trace else now.report
        return encoding.revalidated(encoding.encoded(report), entity_tag)

    def _now(self, run: str, entries: tuple[Entry, ...]) -> _Merged:
        known = _known_of(entries)
        unread = _unread(entries, known)
        standing = encoding.tag(
            entries[0].file.run,
            *((each.file.id, each.file.span, each.stamp) for each in known),
            *unread.unreadable,
            unread.awaited_count,
        )
        is_coming = any(isinstance(entry.state, Queued | Reading) for entry in entries)
        with self._lock:  # one at a time: two requests for the same would do the work twice
            last = self._merged.get(run)
            is_fresh = last is not None and (
                last.standing == standing or (is_coming and monotonic() < last.due_at)
            )
            if last is None or not is_fresh:
                last = self._merged[run] = self._made(standing, known, unread)
            self._merged.move_to_end(run)
            while len(self._merged) > KEPT_RUNS:
                self._merged.popitem(last=False)
            return last

    def _made(self, standing: str, known: tuple[Entry, ...], unread: Unread) -> _Merged:
        begun_at = monotonic()
        settings, name = self._catalog.advice, known[0].file.run
        recordings = [self._advice(entry) for entry in known]
        report = run_report(
            name,
            recordings,
            DEFAULT if settings is None else settings,
            unreadable=unread.unreadable,
            awaited_count=unread.awaited_count,
        )
        now = monotonic()
        rest_s = min(RESTS_A_MERGE * (now - begun_at), MOST_REST_SECONDS)
        return _Merged(standing=standing, report=report, due_at=now + rest_s)

    def _advice(self, entry: Entry) -> TraceAdvice:
        """Return what was said when the file was read, whether its trace is kept or not."""
        if entry.facts is not None and entry.facts.advice is not None:
            return entry.facts.advice
        trace, settings = ready(entry), self._catalog.advice
        if settings is None:
            return advise_trace(trace)
        return advise_trace(trace, settings.for_run(entry.file.run))


def _of_recording(report: RunReport, trace: str) -> RunReport:
    """Return a run's advice with the outcomes of one recording, and of none in particular."""
    return msgspec.structs.replace(
        report,
        workers=tuple(each for each in report.workers if each.trace == trace),
        outcomes=tuple(each for each in report.outcomes if each.trace in {"", trace}),
    )


def _unread(entries: tuple[Entry, ...], known: tuple[Entry, ...]) -> Unread:
    paths = [entry.file.path for entry in entries if isinstance(entry.state, Unreadable)]
    return Unread(
        unreadable=tuple(map(urls.name, paths)),
        awaited_count=len(entries) - len(known) - len(paths),
    )


def _known_of(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return what of a run can be answered for now: files still being read come in later."""
    known = tuple(
        entry
        for entry in entries
        if isinstance(entry.state, Ready)
        or (entry.facts and entry.facts.advice and not isinstance(entry.state, Unreadable))
    )
    if known:
        return known
    problems = [entry.state.problem for entry in entries if isinstance(entry.state, Unreadable)]
    cancelled_count = sum(isinstance(entry.state, Cancelled) for entry in entries)
    if len(problems) == len(entries):
        raise unusable(problems[0])
    if len(problems) + cancelled_count == len(entries):
        raise http_errors.cancelled(entries[0].file.run)
    raise http_errors.still_loading(entries[0].file.run)
