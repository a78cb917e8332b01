"""Flame graphs: of one recording, or of two compared."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from stepscope.analyses.flames.flame_graphs import Phase
from stepscope.analyses.memory.at_peak import memory_at_peak
from stepscope.api.endpoint import (
    Binary,
    Bytes,
    Endpoint,
    Group,
    GroupsEndpoint,
    TraceEndpoint,
)
from stepscope.api.flame import (
    Flame,
    FlameFunctions,
    FlameGraph,
    FlameQuery,
    FlameView,
    Measure,
    bounded,
    calls_flame,
    compared,
    flame_in_time,
    flame_of,
    graph,
    in_steps,
    listed,
    memory_flame,
)
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.model.trace import Trace
from stepscope.render import speedscope

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


SPEEDSCOPE = Bytes(
    media_type="application/json", meaning="A file for speedscope: one sample a path of calls."
)
TITLES = {
    ("calls", "host"): "host time",
    ("calls", "device"): "device time, by what launched it",
    ("modules", "host"): "host time by module",
    ("modules", "device"): "device time by module",
    ("memory", "host"): "memory at its peak",
    ("memory", "device"): "memory at its peak",
}
Shape = Callable[[Flame, FlameView], msgspec.Struct]
ANSWERS: tuple[tuple[str, type[msgspec.Struct], Shape], ...] = (
    ("graph", FlameGraph, graph),
    ("functions", FlameFunctions, listed),
)


def of_trace(shape: Shape, trace: Trace, asked: FlameQuery) -> msgspec.Struct:
    """Answer of one recording."""
    return shape(flame_in_time(trace, asked), asked)


def calls_key(asked: ComparedCalls) -> Key:
    """Return which of a recording's call trees is compared."""
    return (asked.measure,)


def modules_key(asked: ComparedModules) -> Key:
    """Return which of a recording's module trees is compared."""
    return (asked.measure, asked.phase)


def memory_key(asked: ComparedMemory) -> Key:
    """Return which device's memory is compared."""
    return () if asked.device is None else (asked.device,)


def of_two(
    shape: Shape, key: Callable[[Any], Key], groups: Mapping[str, Group[Part]], asked: Compared
) -> msgspec.Struct:
    """Answer of two recordings."""
    return shape(both(groups, key(asked)), asked)


def speedscope_file(trace: Trace, asked: FlameQuery) -> Binary:
    """Answer with a file for speedscope."""
    tree = bounded(flame_in_time(trace, asked), asked)
    parts = speedscope.tree_parts(tree, trace.worker, TITLES[asked.subject, asked.measure])
    return Binary(body="".join(parts).encode("utf-8", "replace"))


ENDPOINTS: tuple[Endpoint, ...] = (
    *(
        TraceEndpoint(
            path=f"flame/{name}",
            meaning=f"The {name} of a flame graph: calls, modules, or memory at its peak.",
            query=FlameQuery,
            response=answer,
            handler=partial(of_trace, shape),
            is_whole=True,
        )
        for name, answer, shape in ANSWERS
    ),
    TraceEndpoint(
        path="flame/speedscope",
        meaning="A flame graph as speedscope reads it.",
        query=FlameQuery,
        response=SPEEDSCOPE,
        handler=speedscope_file,
        is_whole=True,
    ),
    *(
        GroupsEndpoint(
            path=f"flame/compared/{subject}/{name}",
            meaning=f"The {name} of a flame graph of {subject}, compared with another recording's.",
            query=query,
            response=answer,
            part=part,
            entries=recordings,
            handler=partial(of_two, shape, key),
        )
        for subject, query, part, key in (
            ("calls", ComparedCalls, calls_part, calls_key),
            ("modules", ComparedModules, modules_part, modules_key),
            ("memory", ComparedMemory, memory_part, memory_key),
        )
        for name, answer, shape in ANSWERS
    ),
)
