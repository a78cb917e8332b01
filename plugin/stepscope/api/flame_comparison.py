"""What recordings say for the comparison of their flame graphs: trees without the smallest nodes.

They are kept when the events are let go, so that two recordings need not fit in memory at once.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stepscope.analyses.flames.flame_graphs import Phase
from stepscope.analyses.memory.at_peak import memory_at_peak
from stepscope.api.endpoint import Group
from stepscope.api.flame import (
    Flame,
    FlameQuery,
    FlameView,
    Measure,
    bounded,
    calls_flame,
    compared,
    flame_of,
    in_steps,
    memory_flame,
)
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.model.trace import Trace

MEASURES: tuple[Measure, ...] = ("host", "device")
PHASES: tuple[Phase, ...] = ("all", "forward", "backward", "rerun")
Key = tuple[str, ...]
Part = Mapping[Key, Flame]
FULLEST: Key = ()
"""In place of a device's label: the device that held most."""


class Compared(FlameView, frozen=True, kw_only=True):
    """Which recordings are compared; in which time they lie is each one's own."""

    trace: str
    """The id of the recording."""
    baseline: str
    """The id of the recording that it is compared with."""


class ComparedCalls(Compared, frozen=True, kw_only=True):
    """Which calls are compared."""

    measure: Measure = "host"
    """The host's own time, or the device's by what launched it."""


class ComparedModules(ComparedCalls, frozen=True, kw_only=True):
    """Which modules are compared."""

    phase: Phase = "all"
    """The whole, or one pass; `rerun` is what checkpointing ran again."""


class ComparedMemory(Compared, frozen=True, kw_only=True):
    """Whose memory is compared."""

    device: str | None = None
    """The device's label on both sides; without, the device that held most on each."""


def recordings(catalog: Catalog, query: Any) -> dict[str, tuple[Entry, ...]]:  # noqa: ANN401
    """Return the two recordings that a `Compared` names."""
    return {
        "after": (catalog.file(query.trace),),
        "before": (catalog.file(query.baseline),),
    }


def calls_part(trace: Trace) -> Part:
    """Return the calls of a recording's steps."""
    steps = in_steps(trace)
    return {(measure,): _small(calls_flame(steps, measure)) for measure in MEASURES}


def modules_part(trace: Trace) -> Part:
    """Return the modules of a recording's steps.

    Raises:
        MissingDataError: it holds no modules.
    """
    steps = in_steps(trace)
    return {
        (measure, phase): _small(
            flame_of(steps, FlameQuery(subject="modules", measure=measure, phase=phase))
        )
        for measure in MEASURES
        for phase in PHASES
    }


def memory_part(trace: Trace) -> Part:
    """Return the memory at the peak of each device, and under no label that of the fullest.

    Raises:
        MissingDataError: no memory was recorded.
    """
    labels = [peak.curve.device.label for peak in memory_at_peak(trace)]
    parts: dict[Key, Flame] = {(label,): _small(memory_flame(trace, label)) for label in labels}
    fullest = memory_flame(trace, None).about["device"]
    return {**parts, FULLEST: parts[fullest,]}


def _small(flame: Flame) -> Flame:
    return replace(flame, tree=bounded(flame, FlameView()))


def both(groups: Mapping[str, Group[Part]], key: Key) -> Flame:
    """Return the two recordings' flame graphs as one."""
    after, before = (groups[side].parts[0] for side in ("after", "before"))
    return compared(after.get(key) or after[FULLEST], before.get(key) or before[FULLEST])
