"""What changed between two runs, or workers, or spans."""

from collections.abc import Mapping, Sequence

import msgspec

from stepscope.api.endpoint import Group, GroupsEndpoint, Query
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import SCHEMA_VERSION, Problem
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
    """The recordings of one side, and those that are not in it yet."""

    waiting_count: int
    """Recordings of it that are still to be read: with them, the answer may come out otherwise."""
    problems: tuple[Problem, ...]
    """Of its recordings that cannot be read, and are left out."""
    step_ns: tuple[int, ...]
    """Each step's time, in order: a step of several ranks is their mean, and of a very long
    recording neighbours are one; empty without steps."""
    devices: str
    """The names of its devices, or their kind where names were not recorded."""


class ComparisonAnswer(msgspec.Struct, frozen=True):
    """What changed between two sides."""

    schema: int
    before: ComparedSide
    after: ComparedSide
    is_same: bool
    """True where both sides are the same recordings: then nothing can have changed."""
    has_other_devices: bool
    """True where the sides ran on different devices: times then tell of these as well."""
    comparison: Comparison
    modules: tuple[ModuleRow, ...]
    """Empty where one of the sides has no modules recorded."""
    test: str
    """How changes are told from noise."""
    significance: str = ""
    """Significance of the step's change, as text."""
    status_labels: dict[Status, str] = {}
    """Labels of the statuses of rows."""


Side = tuple[str, Group[Sample]]
"""What a side is called, and its recordings."""


def compare_sides(before: Side, after: Side, *, is_same: bool) -> ComparisonAnswer:
    """Return what changed from one side to the other."""
    sides = _together(before), _together(after)
    devices = [_devices(side.traces) for side in sides]
    comparison = compare(before[0], before[1].parts, after[0], after[1].parts)
    return ComparisonAnswer(
        schema=SCHEMA_VERSION,
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


def _together(side: Side) -> SideSamples:
    name, group = side
    return side_samples(name, group.parts)


def _side(group: Group[Sample], side: SideSamples) -> ComparedSide:
    durations = side.durations() if side.step_count else ()
    return ComparedSide(
        waiting_count=group.waiting_count,
        problems=tuple(group.problems),
        step_ns=tuple(round(float(each)) for each in durations),
        devices=_devices(side.traces),
    )


def _devices(recordings: Sequence[Sample]) -> str:
    """Return the most exact that the files say of their devices; nothing where they say nothing."""
    for name in reversed(DEVICE_CONDITIONS):
        known = {each.conditions[name] for each in recordings if name in each.conditions}
        if known:
            return ", ".join(sorted(known))
    return ""


def _has_modules(side: SideSamples) -> bool:
    return any(each.operators.keys["module"].astype(bool).any() for each in side.traces)


BEFORE, AFTER = "before", "after"


class TwoSides(Query, frozen=True, kw_only=True):
    """What is compared with what: whole runs, or one worker of each, or one span."""

    run: str
    """The run's id, of the side that is looked at: *after*."""
    worker: str | None = None
    """One of its workers, by name; all where none is named."""
    span: str | None = None
    """One of their spans; all where none is named."""
    base_run: str
    """The run's id of the side that it is held against: *before*."""
    base_worker: str | None = None
    """One of its workers, by name; all where none is named."""
    base_span: str | None = None
    """One of their spans; all where none is named."""


Choice = tuple[str, str | None, str | None]


def _choices(query: TwoSides) -> dict[str, Choice]:
    return {
        BEFORE: (query.base_run, query.base_worker, query.base_span),
        AFTER: (query.run, query.worker, query.span),
    }


def entries(catalog: Catalog, query: TwoSides) -> Mapping[str, tuple[Entry, ...]]:
    """Return both sides' recordings."""
    return {side: _chosen(catalog, choice) for side, choice in _choices(query).items()}


def _chosen(catalog: Catalog, choice: Choice) -> tuple[Entry, ...]:
    run, worker, span = choice
    known = catalog.run(run)
    found = tuple(
        entry
        for entry in known
        if worker in {None, entry.file.worker} and span in {None, entry.file.span}
    )
    if not found:
        msg = f"there is no such recording: {_called(known[0].file.run, choice)}"
        raise UnknownNameError(msg)
    return found


def _called(name: str, choice: Choice) -> str:
    _, worker, span = choice
    return ", ".join(filter(None, (name, worker, f"span {span}" if span else "")))


def ask(groups: Mapping[str, Group[Sample]], query: TwoSides) -> ComparisonAnswer:
    """Answer with what changed."""
    chosen = _choices(query)
    before, after = (
        (_called(groups[key].name, choice), groups[key]) for key, choice in chosen.items()
    )
    return compare_sides(before, after, is_same=chosen[BEFORE] == chosen[AFTER])


ENDPOINTS = (
    GroupsEndpoint(
        path="comparison",
        meaning="What changed between two runs, workers or spans, and which of it is more than"
        " noise.",
        query=TwoSides,
        part=sample,
        entries=entries,
        response=ComparisonAnswer,
        handler=ask,
    ),
)
