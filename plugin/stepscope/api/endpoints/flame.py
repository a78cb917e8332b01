"""Flame graphs: of one recording, or of two compared."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from stepscope.api.endpoint import (
    Binary,
    Bytes,
    Endpoint,
    Group,
    GroupsEndpoint,
    TraceEndpoint,
)
from stepscope.api.flame import Flame, FlameQuery, FlameView, bounded, flame_in_time, graph, listed
from stepscope.api.flame_comparison import (
    Compared,
    ComparedCalls,
    ComparedMemory,
    ComparedModules,
    Key,
    Part,
    both,
    calls_part,
    memory_part,
    modules_part,
    recordings,
)
from stepscope.api.flame_messages import FlameFunctions, FlameGraph
from stepscope.model.trace import Trace
from stepscope.render import speedscope

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
