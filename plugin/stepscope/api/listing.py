"""The catalog's entries as the wire type `Runs`."""

from itertools import groupby

from stepscope import addresses, discover
from stepscope.api.messages import Progress, Runs, RunState, Span, State, Worker
from stepscope.catalog import Catalog, Dropped, Entry, Queued, Reading, Ready, Unreadable
from stepscope.report import SCHEMA_VERSION


def runs(catalog: Catalog) -> Runs:
    """Return everything found, and how far reading has come."""
    is_scanning = catalog.is_scanning  # before the entries: a first look that ends now is seen
    entries = catalog.entries()
    states = {_state(entry) for entry in entries}
    return Runs(
        schema=SCHEMA_VERSION,
        logdir=", ".join(addresses.shown(each.path) for each in catalog.directories),
        scanning=is_scanning,
        loading=bool(states & {"queued", "reading"}),
        runs=tuple(
            _run(identity, tuple(own))
            for identity, own in groupby(entries, lambda entry: entry.file.run_id)
        ),
        problems=catalog.problems,
        looked_for=discover.LOOKED_FOR,
    )


def _run(identity: str, entries: tuple[Entry, ...]) -> RunState:
    return RunState(
        id=identity,
        name=entries[0].file.run,
        synthetic=any(entry.facts.is_synthetic for entry in entries if entry.facts),
        state=_together({_state(entry) for entry in entries}),
        workers=tuple(
            _worker(worker, tuple(own))
            for worker, own in groupby(entries, lambda entry: entry.file.worker)
        ),
    )


def _worker(name: str, entries: tuple[Entry, ...]) -> Worker:
    ranks = [entry.facts.rank for entry in entries if entry.facts]
    return Worker(
        name=name,
        rank=next((rank for rank in ranks if rank is not None), None),
        spans=tuple(_span(entry) for entry in entries),
    )


def _span(entry: Entry) -> Span:
    state = entry.state
    return Span(
        trace=entry.file.id,
        label=entry.file.span,
        file=addresses.name(entry.file.path),
        state=_state(entry),
        progress=_progress(state) if isinstance(state, Reading) else None,
        problem=state.problem if isinstance(state, Unreadable) else None,
    )


def _progress(state: Reading) -> Progress:
    return Progress(
        phase=state.phase,
        bytes_done=state.bytes_done,
        bytes_total=state.bytes_total,
        events=state.events,
    )


def _state(entry: Entry) -> State:
    match entry.state:
        case Queued():
            return "queued"
        case Reading():
            return "reading"
        case Ready() | Dropped():  # one that was let go is read again by being asked for
            return "ready"
        case Unreadable():
            return "unreadable"


def _together(states: set[State]) -> State:
    """A run is still being read while any of its files is; one good file makes it ready."""
    if states == {"queued"}:
        return "queued"
    if states & {"queued", "reading"}:
        return "reading"
    return "ready" if "ready" in states else "unreadable"
