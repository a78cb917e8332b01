"""Endpoints of flame graphs: of one trace, or of two traces compared."""

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
    trace_endpoint,
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
    function_list,
    graph,
    in_steps,
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
"""Key of the device with the highest peak, instead of its label."""


class ComparedQuery(FlameView, frozen=True, kw_only=True):
    """Two traces; a time range applies to both."""

    trace: str
    """Id of the trace."""
    baseline: str
    """Id of the trace that it is compared with."""


class ComparedCallsQuery(ComparedQuery, frozen=True, kw_only=True):
    """The compared calls."""

    measure: Measure = "host"
    """Host time, or device time by launching call."""


class ComparedModulesQuery(ComparedCallsQuery, frozen=True, kw_only=True):
    """The compared modules."""

    phase: Phase = "all"
    """All passes, or one; `rerun`: forward calls that checkpointing repeated."""


class ComparedMemoryQuery(ComparedQuery, frozen=True, kw_only=True):
    """The compared memory."""

    device: str | None = None
    """The device's label on both sides; by default, each side's device with the highest peak."""


def entries(catalog: Catalog, query: Any) -> dict[str, tuple[Entry, ...]]:  # noqa: ANN401
    """Return the entries of the two traces of a `ComparedQuery`."""
    return {
        "after": (catalog.file(query.trace),),
        "before": (catalog.file(query.baseline),),
    }


def calls_part(trace: Trace) -> Part:
    """Return the calls of a trace's steps."""
    steps = in_steps(trace)
    return {(measure,): _small(calls_flame(steps, measure)) for measure in MEASURES}


def modules_part(trace: Trace) -> Part:
    """Return the modules of a trace's steps.

    Raises:
        MissingDataError: the trace has no modules.
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
    """Return each device's memory at its peak, and that of the fullest device as `FULLEST`.

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
    """Return the comparison of two traces' flame graphs."""
    after, before = (groups[side].parts[0] for side in ("after", "before"))
    return compared(after.get(key) or after[FULLEST], before.get(key) or before[FULLEST])


SPEEDSCOPE = Bytes(
    media_type="application/json", meaning="A file for speedscope, with one sample per call path."
)
TITLES = {
    ("calls", "host"): "host time",
    ("calls", "device"): "device time by launching call",
    ("modules", "host"): "host time by module",
    ("modules", "device"): "device time by module",
    ("memory", "host"): "memory at its peak",
    ("memory", "device"): "memory at its peak",
}
Shape = Callable[[Flame, FlameView], msgspec.Struct]
SHAPES: tuple[tuple[str, type[msgspec.Struct], Shape], ...] = (
    ("graph", FlameGraph, graph),
    ("functions", FlameFunctions, function_list),
)
COMPARED: tuple[
    tuple[str, type[ComparedQuery], Callable[[Trace], Part], Callable[[Any], Key]], ...
] = (
    ("calls", ComparedCallsQuery, calls_part, lambda query: (query.measure,)),
    ("modules", ComparedModulesQuery, modules_part, lambda query: (query.measure, query.phase)),
    (
        "memory",
        ComparedMemoryQuery,
        memory_part,
        lambda query: FULLEST if query.device is None else (query.device,),
    ),
)


def of_trace(shape: Shape, trace: Trace, query: FlameQuery) -> msgspec.Struct:
    """Return the flame graph of one trace in a response's shape."""
    return shape(flame_in_time(trace, query), query)


def of_two(
    shape: Shape,
    key: Callable[[Any], Key],
    groups: Mapping[str, Group[Part]],
    query: ComparedQuery,
) -> msgspec.Struct:
    """Return the compared flame graph of two traces in a response's shape."""
    return shape(both(groups, key(query)), query)


def speedscope_file(trace: Trace, query: FlameQuery) -> Binary:
    """Return a flame graph as a file for speedscope."""
    tree = bounded(flame_in_time(trace, query), query)
    parts = speedscope.tree_parts(tree, trace.worker, TITLES[query.subject, query.measure])
    return Binary(body="".join(parts).encode("utf-8", "replace"))


ENDPOINTS: tuple[Endpoint, ...] = (
    *(
        TraceEndpoint(
            path=f"flame/{name}",
            meaning=f"The {name} of a flame graph: calls, modules, or memory at its peak.",
            query=FlameQuery,
            response=response,
            handler=partial(of_trace, shape),
            is_whole=True,
        )
        for name, response, shape in SHAPES
    ),
    trace_endpoint("flame/speedscope", speedscope_file, response=SPEEDSCOPE, is_whole=True),
    *(
        GroupsEndpoint(
            path=f"flame/compared/{subject}/{name}",
            meaning=f"The {name} of a flame graph of {subject}, compared with another trace's.",
            query=query,
            response=response,
            part=part,
            entries=entries,
            handler=partial(of_two, shape, key),
        )
        for subject, query, part, key in COMPARED
        for name, response, shape in SHAPES
    ),
)
