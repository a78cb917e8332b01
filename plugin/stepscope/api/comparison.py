"""The answer to what changed between two sides: the comparison, and what it rests on."""

from collections.abc import Sequence

import msgspec

from stepscope.api.endpoint import Group
from stepscope.base.report import SCHEMA_VERSION, Problem
from stepscope.comparison import TEST, compare
from stepscope.comparison.messages import Comparison, ModuleRow
from stepscope.comparison.operator_changes import module_rows
from stepscope.comparison.samples import Sample
from stepscope.comparison.side import SideSamples, side_samples

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


Side = tuple[str, Group[Sample]]
"""What a side is called, and its recordings."""


def compare_sides(before: Side, after: Side, *, is_same: bool) -> ComparisonAnswer:
    """Return what changed from one side to the other."""
    sides = _together(before), _together(after)
    devices = [_devices(side.traces) for side in sides]
    return ComparisonAnswer(
        schema=SCHEMA_VERSION,
        before=_side(before[1], sides[0]),
        after=_side(after[1], sides[1]),
        is_same=is_same,
        has_other_devices="" not in devices and devices[0] != devices[1],
        comparison=compare(before[0], before[1].parts, after[0], after[1].parts),
        modules=module_rows(sides) if all(map(_has_modules, sides)) else (),
        test=TEST,
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
