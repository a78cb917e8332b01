"""Comparison of two runs, workers or spans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from stepscope.api.endpoint import Group, GroupsEndpoint, Query, RunQuery
from stepscope.api.messages import Response
from stepscope.base.errors import UnknownNameError
from stepscope.base.formatting import number_ranges
from stepscope.base.report import Problem
from stepscope.base.step_range import StepRange, parse_steps
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.comparison import TEST, compare
from stepscope.comparison.comparability import comparability_phrase, devices_of
from stepscope.comparison.likeness import SAME_MODEL
from stepscope.comparison.messages import Comparable, Comparison, ModuleRow, Status
from stepscope.comparison.operator_changes import module_rows
from stepscope.comparison.samples import Sample, sample
from stepscope.comparison.selected_steps import select_steps, step_label
from stepscope.comparison.side import SideSamples, side_samples
from stepscope.render.comparison_phrases import (
    NEUTRAL,
    STATUS,
    interval,
    is_comparable,
    step_significance,
)


class ComparedSide(msgspec.Struct, frozen=True):
    """Traces of one side of a comparison."""

    waiting_count: int
    """Traces that are not read yet; they may change the result."""
    problems: tuple[Problem, ...]
    """Problems of the traces that cannot be read."""
    step_ns: tuple[int, ...]
    """Step times in order: means over ranks, and over neighbouring steps of very long traces; empty
    without steps."""
    step_numbers: str
    """All steps of its traces as ranges: `3-8`; empty without steps."""
    devices: str
    """Names of its devices, or their kind where names are not recorded."""


class ComparisonResult(Response, frozen=True, kw_only=True):
    """Differences between two sides."""

    before: ComparedSide
    after: ComparedSide
    is_same: bool
    """True where both sides are the same steps of the same traces."""
    comparison: Comparison
    modules: tuple[ModuleRow, ...]
    """Empty where a side has no recorded modules."""
    test: str
    """The test for statistical significance."""
    significance: str
    """Significance of the step's change, as text."""
    interval: str
    """Confidence interval of the step's difference, as text; empty where there is none."""
    status_labels: dict[Status, str]
    """Labels of the statuses of rows."""


@dataclass(frozen=True, kw_only=True)
class SideTraces:
    """A side of a comparison: its traces, and the steps to compare."""

    name: str
    group: Group[Sample]
    steps: StepRange | None = None
    """None: all."""

    @property
    def traces(self) -> list[Sample]:
        """The traces with only these steps."""
        return select_steps(self.group.parts, self.steps)

    @property
    def label(self) -> str:
        """The name with the selected steps."""
        return step_label(self.name, self.steps)


def compare_sides(before: SideTraces, after: SideTraces, *, is_same: bool) -> ComparisonResult:
    """Return the differences between two sides.

    Raises:
        UsageError: A side has none of its selected steps.
    """
    traces = before.traces, after.traces
    sides = side_samples(before.label, traces[0]), side_samples(after.label, traces[1])
    comparison = compare(
        before.label,
        traces[0],
        after.label,
        traces[1],
        are_steps_selected=(before.steps, after.steps) != (None, None),
    )
    return ComparisonResult(
        before=_side(before.group, sides[0]),
        after=_side(after.group, sides[1]),
        is_same=is_same,
        comparison=comparison,
        modules=module_rows(sides) if all(map(_has_modules, sides)) else (),
        test=TEST,
        significance=step_significance(comparison),
        interval=interval(comparison),
        status_labels=STATUS if is_comparable(comparison) else NEUTRAL,
    )


def _side(group: Group[Sample], side: SideSamples) -> ComparedSide:
    durations = side.durations() if side.step_count else ()
    return ComparedSide(
        waiting_count=group.waiting_count,
        problems=tuple(group.problems),
        step_ns=tuple(round(float(duration)) for duration in durations),
        step_numbers=number_ranges(
            number for trace in group.parts if trace.has_steps for number in trace.step_numbers
        ),
        devices=devices_of(side.traces),
    )


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
    steps: str | None = None
    """Steps by their numbers, as `5` or `3-5`; all steps by default."""
    base_run: str
    """Id of the run *before*."""
    base_worker: str | None = None
    """Name of a worker; all workers by default."""
    base_span: str | None = None
    """A span; all spans by default."""
    base_steps: str | None = None
    """Steps by their numbers, as `5` or `3-5`; all steps by default."""


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
    steps = {
        BEFORE: parse_steps(query.base_steps, "base_steps") if query.base_steps else None,
        AFTER: parse_steps(query.steps) if query.steps else None,
    }
    before, after = (
        SideTraces(name=_label(groups[key].name, choice), group=groups[key], steps=steps[key])
        for key, choice in choices.items()
    )
    is_same = choices[BEFORE] == choices[AFTER] and steps[BEFORE] == steps[AFTER]
    return compare_sides(before, after, is_same=is_same)


class Candidate(msgspec.Struct, frozen=True):
    """A run to compare another run with."""

    run: str
    """Id of the run."""
    level: Comparable
    likeness: float | None
    """Likeness of the models, from 0 to 1; None where it is unknown."""
    is_same_model: bool
    reason: str
    """Likeness and differences as text: `same device, models 96 % alike`."""


class Candidates(Response, frozen=True, kw_only=True):
    """The other runs with a trace that is read, the most alike first."""

    candidates: tuple[Candidate, ...]


def candidate_entries(catalog: Catalog, query: RunQuery) -> Mapping[str, tuple[Entry, ...]]:
    """Return the first read trace of each run, and that of the queried run."""
    run = catalog.run(query.run)
    first = {query.run: tuple(filter(_is_read, run))[:1] or run[:1]}
    for entry in filter(_is_read, catalog.entries()):
        first.setdefault(entry.file.run_id, (entry,))
    return first


def _is_read(entry: Entry) -> bool:
    return entry.facts is not None


def candidates(groups: Mapping[str, Group[Sample]], query: RunQuery) -> Candidates:
    """Return the runs to compare a run with, the most alike first."""
    after = groups[query.run].parts
    rated = (
        _candidate(run, group.parts, after)
        for run, group in groups.items()
        if run != query.run and group.parts and after
    )
    return Candidates(candidates=tuple(sorted(rated, key=_rank)))


LEVELS: tuple[Comparable, ...] = ("comparable", "with-care", "not-comparable")


def _candidate(run: str, before: Sequence[Sample], after: Sequence[Sample]) -> Candidate:
    of, reason = comparability_phrase(before, after)
    return Candidate(
        run=run,
        level=of.level,
        likeness=of.likeness,
        is_same_model=of.likeness is not None and of.likeness >= SAME_MODEL,
        reason=reason,
    )


def _rank(of: Candidate) -> tuple[bool, int, float]:
    return not of.is_same_model, LEVELS.index(of.level), -(of.likeness or 0.0)


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
    GroupsEndpoint(
        path="comparison/candidates",
        meaning="Runs to compare a run with, the most alike first.",
        query=RunQuery,
        part=sample,
        entries=candidate_entries,
        response=Candidates,
        handler=candidates,
        needs_all=False,
    ),
)
