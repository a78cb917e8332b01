"""The catalog's entries as the wire type `Runs`."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import get_args

from stepscope.api.messages import Progress, RunResult, Runs, RunState, Span, State, Worker
from stepscope.api.run_results import NO_RESULTS, Results
from stepscope.base import urls
from stepscope.base.findings import Severity
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import (
    Cancelled,
    Entry,
    Growing,
    Queued,
    Reading,
    Ready,
    Summarised,
    Unreadable,
)
from stepscope.readers.eta import EtaEstimator
from stepscope.storage import discover

STATES: Mapping[type[object], State] = {
    Queued: "queued",
    Growing: "queued",
    Reading: "reading",
    Ready: "ready",
    Summarised: "ready",  # a request reads its events
    Cancelled: "cancelled",
    Unreadable: "unreadable",
}


@dataclass(frozen=True, kw_only=True)
class _Moment:
    """State of the catalog that is common to all files."""

    now: float
    pace: EtaEstimator
    positions: Mapping[str, int]
    """Positions of the queued files, by id."""


def runs(catalog: Catalog, results: Results = NO_RESULTS) -> Runs:
    """Return all runs of the catalog, with the progress of reading and their results so far."""
    is_scanning = (
        catalog.is_scanning
    )  # before the entries: a scan that ends now has its files in them
    positions = {identity: position for position, identity in enumerate(catalog.queue(), start=1)}
    moment = _Moment(now=monotonic(), pace=catalog.eta, positions=positions)
    entries = catalog.entries()
    states = {_state(entry) for entry in entries}
    return Runs(
        logdir=", ".join(urls.redacted(directory.path) for directory in catalog.directories),
        scanning=is_scanning,
        loading=bool(states & {"queued", "reading"}),
        has_pending_results=results.is_pending,
        runs=tuple(
            _run(identity, tuple(of_run), moment, results.by_run.get(identity))
            for identity, of_run in groupby(entries, lambda entry: entry.file.run_id)
        ),
        problems=catalog.problems,
        looked_for=discover.TRACE_NAMES,
        looked_at_count=catalog.directory_scan.file_count,
        is_cancelled=catalog.directory_scan.is_cancelled,
    )


def _run(
    identity: str, entries: tuple[Entry, ...], moment: _Moment, result: RunResult | None
) -> RunState:
    return RunState(
        id=identity,
        name=entries[0].file.run,
        synthetic=any(entry.facts.is_synthetic for entry in entries if entry.facts),
        state=_run_state({_state(entry) for entry in entries}),
        workers=tuple(
            _worker(worker, tuple(of_worker), moment)
            for worker, of_worker in groupby(entries, lambda entry: entry.file.worker)
        ),
        result=result,
    )


def _worker(name: str, entries: tuple[Entry, ...], moment: _Moment) -> Worker:
    ranks = [entry.facts.rank for entry in entries if entry.facts]
    return Worker(
        name=name,
        rank=next((rank for rank in ranks if rank is not None), None),
        spans=tuple(_span(entry, moment) for entry in entries),
        host=next(filter(None, map(_host, entries)), None),
    )


def _host(entry: Entry) -> str | None:
    part = entry.facts.advice.part if entry.facts and entry.facts.advice else None
    return part.host or None if part is not None else None


def _span(entry: Entry, moment: _Moment) -> Span:
    state = entry.state
    return Span(
        trace=entry.file.id,
        label=entry.file.span,
        file=urls.name(entry.file.path),
        state=_state(entry),
        progress=_progress(state, moment) if isinstance(state, Reading) else None,
        problem=state.problem if isinstance(state, Unreadable) else None,
        place=moment.positions.get(entry.file.id),
        file_bytes=entry.stamp.size_bytes,
        events=entry.facts.events if entry.facts else None,
        damage=_damage(entry),
        is_growing=isinstance(state, Growing),
    )


def _damage(entry: Entry) -> Severity | None:
    """Return the worst damage of a file."""
    if entry.facts is None or entry.facts.advice is None:
        return None
    severities = {
        item.severity for item in entry.facts.advice.worker.health if item.nature == "damage"
    }
    return next((severity for severity in get_args(Severity) if severity in severities), None)


def _progress(state: Reading, moment: _Moment) -> Progress:
    progress, clock = state.progress, state.clock
    left_s = moment.pace.left_s(progress, clock, moment.now)
    return Progress(
        phase=progress.phase,
        bytes_done=progress.bytes_done,
        bytes_total=progress.bytes_total,
        events=progress.events,
        elapsed_ns=_nanoseconds(max(0.0, moment.now - clock.began)),
        left_ns=None if left_s is None else _nanoseconds(left_s),
    )


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _state(entry: Entry) -> State:
    return STATES[type(entry.state)]


def _run_state(states: set[State]) -> State:
    """Return a run's state: reading while any file is, then ready if any file is."""
    if states == {"queued"}:
        return "queued"
    if states & {"queued", "reading"}:
        return "reading"
    order: tuple[State, ...] = ("ready", "cancelled", "unreadable")
    return next(state for state in order if state in states)
