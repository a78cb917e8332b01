"""Comparison of two runs, workers or spans."""

from collections.abc import Mapping, Sequence

import msgspec

from stepscope.api.endpoint import Group, GroupsEndpoint, Query
from stepscope.api.messages import Response
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import Problem
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.comparison import TEST, compare
from stepscope.comparison.messages import Comparison, ModuleRow, Status
from stepscope.comparison.operator_changes import module_rows
from stepscope.comparison.samples import Sample, sample
from stepscope.comparison.side import SideSamples, side_samples
from stepscope.render.comparison_phrases import STATUS, step_significance

DEVICE_CONDITIONS = ("the kind of device", "the device")


class ComparedSide(msgspec.Struct, frozen=True):
    """Traces of one side of a comparison."""

    waiting_count: int
    """Traces that are not read yet; they may change the result."""
    problems: tuple[Problem, ...]
    """Problems of the traces that cannot be read."""
    step_ns: tuple[int, ...]
    """Step times in order: means over ranks, and over neighbouring steps of very long traces; empty
    without steps."""
    devices: str
    """Names of its devices, or their kind where names are not recorded."""


class ComparisonResult(Response, frozen=True, kw_only=True):
    """Differences between two sides."""

    before: ComparedSide
    after: ComparedSide
    is_same: bool
    """True where both sides are the same traces."""
    has_other_devices: bool
    """True where the sides ran on different devices, which affect all times."""
    comparison: Comparison
    modules: tuple[ModuleRow, ...]
    """Empty where a side has no recorded modules."""
    test: str
    """The test for statistical significance."""
    significance: str
    """Significance of the step's change, as text."""
    status_labels: dict[Status, str]
    """Labels of the statuses of rows."""


Side = tuple[str, Group[Sample]]
"""Label of a side, and its traces."""


def compare_sides(before: Side, after: Side, *, is_same: bool) -> ComparisonResult:
    """Return the differences between two sides."""
    sides = _samples(before), _samples(after)
    devices = [_devices(side.traces) for side in sides]
    comparison = compare(before[0], before[1].parts, after[0], after[1].parts)
    return ComparisonResult(
        before=_side(before[1], sides[0]),
        after=_side(after[1], sides[1]),
        is_same=is_same,
        has_other_devices="" not in devices and devices[0] != devices[1],
        comparison=comparison,
        modules=module_rows(sides) if all(map(_has_modules, sides)) else (),
        test=TEST,
        significance=step_significance(comparison),
        status_labels=STATUS,
    )


def _samples(side: Side) -> SideSamples:
    name, group = side
    return side_samples(name, group.parts)


def _side(group: Group[Sample], side: SideSamples) -> ComparedSide:
    durations = side.durations() if side.step_count else ()
    return ComparedSide(
        waiting_count=group.waiting_count,
        problems=tuple(group.problems),
        step_ns=tuple(round(float(duration)) for duration in durations),
        devices=_devices(side.traces),
    )


def _devices(traces: Sequence[Sample]) -> str:
    """Return the devices' names, else their kind, else an empty text."""
    for name in reversed(DEVICE_CONDITIONS):
        values = {trace.conditions[name] for trace in traces if name in trace.conditions}
        if values:
            return ", ".join(sorted(values))
    return ""


def _has_modules(side: SideSamples) -> bool:
    return any(trace.operators.keys["module"].astype(bool).any() for trace in side.traces)


BEFORE, AFTER = "before", "after"


class TwoSides(Query, frozen=True, kw_only=True):
    """Two sides: whole runs, or one worker or span of each."""

    run: str
    """Id of the run *after*."""
    worker: str | None = None
    """Name of a worker; all workers by default."""
    span: str | None = None
    """A span; all spans by default."""
    base_run: str
    """Id of the run *before*."""
    base_worker: str | None = None
    """Name of a worker; all workers by default."""
    base_span: str | None = None
    """A span; all spans by default."""


Choice = tuple[str, str | None, str | None]


def _choices(query: TwoSides) -> dict[str, Choice]:
    return {
        BEFORE: (query.base_run, query.base_worker, query.base_span),
        AFTER: (query.run, query.worker, query.span),
    }


def entries(catalog: Catalog, query: TwoSides) -> Mapping[str, tuple[Entry, ...]]:
    """Return the traces of both sides."""
    return {side: _entries(catalog, choice) for side, choice in _choices(query).items()}


def _entries(catalog: Catalog, choice: Choice) -> tuple[Entry, ...]:
    run, worker, span = choice
    entries = catalog.run(run)
    matches = tuple(
        entry
        for entry in entries
        if worker in {None, entry.file.worker} and span in {None, entry.file.span}
    )
    if not matches:
        msg = f"there is no such trace: {_label(entries[0].file.run, choice)}"
        raise UnknownNameError(msg)
    return matches


def _label(name: str, choice: Choice) -> str:
    _, worker, span = choice
    return ", ".join(filter(None, (name, worker, f"span {span}" if span else "")))


def compared(groups: Mapping[str, Group[Sample]], query: TwoSides) -> ComparisonResult:
    """Return the differences between two runs, workers or spans."""
    choices = _choices(query)
    before, after = (
        (_label(groups[key].name, choice), groups[key]) for key, choice in choices.items()
    )
    return compare_sides(before, after, is_same=choices[BEFORE] == choices[AFTER])


ENDPOINTS = (
    GroupsEndpoint(
        path="comparison",
        meaning="Differences between two runs, workers or spans, with their significance.",
        query=TwoSides,
        part=sample,
        entries=entries,
        response=ComparisonResult,
        handler=compared,
    ),
)
