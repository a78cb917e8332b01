"""Regions of compiled code: calls, compilations, graph breaks and cost.

At a graph break, the compiled code of a frame calls the rest of the frame, which is another
compiled region. So a region called from a region is a break (or a compiled function that dynamo
could not inline).

Between the two regions Python runs: code outside the graph, and the next region's guards. Stacks
give the source lines: dynamo names the rest of a frame `torch_dynamo_resume_in_forward_at_13`.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.compiled.compilations import compilation_table
from stepscope.analyses.core.compile_events import (
    BACKWARD,
    COMPILE_ID,
    GRAPH,
    LOOKUP,
    REGION,
    compile_events,
    device_work,
    name_parts,
    nearest_named,
)
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.window import window
from stepscope.base.findings import SourceLine
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
    Column("region", "object", "text", "Dynamo's compile id, `frame/compilation`: `0/1`."),
    Column("frame", "int64", "id", "Number of the compiled frame; -1: compiled autograd's."),
    Column("compilation", "int64", "id", "Number of the compilation; above 0: a recompilation."),
    Column("call_count", "int64", "count", "Calls of the region."),
    Column("continued_count", "int64", "count", "Calls from another region: after a break."),
    Column("host_ns", "int64", "ns", "Sum of their durations, nested regions included."),
    Column("python_ns", "int64", "ns", "Part without recorded calls: Python of the frame."),
    Column("inner_compile_ns", "int64", "ns", "Part of compilations."),
    Column("kernel_count", "int64", "count", "Kernels launched in it, nested regions left out."),
    Column("device_ns", "int64", "ns", "Device time of its direct launches."),
    Column("compile_count", "int64", "count", "Recorded compilations with this id (torch 2.12+)."),
    Column("compile_ns", "int64", "ns", "Their duration."),
)
BREAK_SCHEMA: Schema = (
    Column("region", "object", "text", "The region that was left: dynamo's compile id."),
    Column("next_region", "object", "text", "The region that was called from it."),
    Column("count", "int64", "count", "Number of such calls."),
    Column("next_ns", "int64", "ns", "Time in the region that was called."),
    Column("lookup_ns", "int64", "ns", "Time to check its guards (`TorchDynamo Cache Lookup`)."),
    Column("python_ns", "int64", "ns", "Python between graphs in the calls that were left."),
)
GRAPH_SCHEMA: Schema = (
    Column("graph", "object", "text", "Inductor's key of the compiled graph."),
    Column("region", "object", "text", "The region that calls it; None: called elsewhere."),
    Column("is_backward", "bool", "", "Called by `CompiledFunctionBackward`."),
    Column("call_count", "int64", "count", "Calls of the graph."),
    Column("host_ns", "int64", "ns", "Sum of their durations."),
    Column("kernel_count", "int64", "count", "Kernels launched in it."),
    Column("device_ns", "int64", "ns", "Device time of its launches."),
)


@public_table(
    "compiled-regions",
    SCHEMA,
    "One row per region of torch.compile: its calls, compilations and graph breaks, and their"
    " cost.",
)
@computed
def compiled_region_table(trace: Trace) -> pd.DataFrame:
    """Return one row per region, the longest first; compiled ones without a call come last."""
    calls, events = trace.host_calls, compile_events(trace)
    rows = _self_nearest(events.region)
    compiled = compilation_table(trace)
    identified = compiled[compiled["compile_id"].notna().to_numpy()]
    called = name_parts(trace, rows, REGION, "id")
    ids = np.concatenate((called, identified["compile_id"].to_numpy()))
    group, regions = pd.factorize(ids)
    count = len(regions)
    of_call, of_compilation = group[: len(rows)], group[len(rows) :]
    is_nested = np.append(events.region, NONE)[calls["parent"].to_numpy()[rows]] >= 0
    inside = _sum_inside(trace, events.region, rows)
    columns: dict[str, NDArray[Any]] = {
        "region": np.asarray(regions, dtype=object),
        "frame": np.array([_number(text, "frame") for text in regions], dtype=np.int64),
        "compilation": np.array([_number(text, "number") for text in regions], dtype=np.int64),
        "call_count": np.bincount(of_call, minlength=count),
        "continued_count": np.bincount(of_call[is_nested], minlength=count),
        "host_ns": sums(calls["duration_ns"].to_numpy()[rows], of_call, count),
        "python_ns": sums(calls["self_ns"].to_numpy()[rows], of_call, count),
        **{name: sums(values, of_call, count) for name, values in inside.items()},
        "compile_count": np.bincount(of_compilation, minlength=count),
        "compile_ns": sums(identified["duration_ns"].to_numpy(), of_compilation, count),
    }
    return to_frame(SCHEMA, columns, "-host_ns", "region")


def _sum_inside(trace: Trace, nearest_row: Ints, rows: Ints) -> dict[str, Ints]:
    """Return, for each of `rows`, sums over the calls for which it is `nearest_row`."""
    calls, phase, work = trace.host_calls, compile_events(trace).phase, device_work(trace)
    index = np.full(len(calls) + 1, NONE, dtype=np.int64)
    index[rows] = np.arange(len(rows))
    inside = np.flatnonzero(nearest_row >= 0)
    of_row = index[nearest_row[inside]]
    is_phase = phase[inside] == inside
    compile_ns = np.where(is_phase, calls["duration_ns"].to_numpy()[inside], 0)
    return {
        "inner_compile_ns": sums(compile_ns, of_row, len(rows)),
        "kernel_count": sums(work.kernel_count[inside], of_row, len(rows)),
        "device_ns": sums(work.device_ns[inside], of_row, len(rows)),
    }


@public_table(
    "graph-breaks",
    BREAK_SCHEMA,
    "One row per pair of compiled regions of which one called the other: a break in a graph, and"
    " what it cost.",
)
@computed
def graph_break_table(trace: Trace) -> pd.DataFrame:
    """Return one row per pair of a region and a region called from it, most time first."""
    calls, events = trace.host_calls, compile_events(trace)
    inner = _self_nearest(events.region)
    outer = np.append(events.region, NONE)[calls["parent"].to_numpy()[inner]]
    inner, outer = inner[outer >= 0], outer[outer >= 0]
    both = np.concatenate((outer, inner))
    names, codes = _coded(name_parts(trace, both, REGION, "id"))
    pair, distinct = pd.factorize(codes[: len(outer)] * max(1, len(names)) + codes[len(outer) :])
    count = len(distinct)
    left, called = np.divmod(distinct.astype(np.int64), max(1, len(names)))
    first_of_outer = ~pd.Series(outer).duplicated().to_numpy()
    python_ns = np.where(first_of_outer, calls["self_ns"].to_numpy()[outer], 0)
    columns: dict[str, NDArray[Any]] = {
        "region": names[left],
        "next_region": names[called],
        "count": np.bincount(pair, minlength=count),
        "next_ns": sums(calls["duration_ns"].to_numpy()[inner], pair, count),
        "lookup_ns": sums(_lookup_before(trace, inner), pair, count),
        "python_ns": sums(python_ns, pair, count),
    }
    return to_frame(BREAK_SCHEMA, columns, "-next_ns")


def _lookup_before(trace: Trace, rows: Ints) -> Ints:
    """Return the duration of the cache lookup by the same caller right before each call."""
    calls = trace.host_calls
    lookups = np.flatnonzero(name_mask(calls["name"], LOOKUP.__eq__))
    parent, duration = calls["parent"].to_numpy(), calls["duration_ns"].to_numpy()
    if not len(lookups):
        return np.zeros(len(rows), dtype=np.int64)
    last = lookups[np.maximum(np.searchsorted(lookups, rows) - 1, 0)]
    is_its = (last < rows) & (parent[last] == parent[rows])
    return np.where(is_its, duration[last], 0)


@public_table(
    "compiled-graphs",
    GRAPH_SCHEMA,
    "One row per graph that Inductor compiled and region that calls it: calls, host and device"
    " time.",
)
@computed
def compiled_graph_table(trace: Trace) -> pd.DataFrame:
    """Return one row per region and graph that Inductor compiled, the longest first."""
    calls, events = trace.host_calls, compile_events(trace)
    rows = _self_nearest(events.graph)
    hashes, of_hash = _coded(name_parts(trace, rows, GRAPH, "hash"))
    regions, region = _coded(name_parts(trace, events.region[rows], REGION, "id"))
    in_backward = nearest_named(trace, BACKWARD)[rows] >= 0
    key = (of_hash * (len(regions) + 1) + region + 1) * 2 + in_backward
    group, distinct = pd.factorize(key)
    count = len(distinct)
    inside = _sum_inside(trace, events.graph, rows)
    which, is_backward = np.divmod(distinct.astype(np.int64), 2)
    graph, in_region = np.divmod(which, len(regions) + 1)
    columns: dict[str, NDArray[Any]] = {
        "graph": hashes[graph],
        "region": np.array([*regions, None], dtype=object)[in_region - 1],
        "is_backward": is_backward.astype(bool),
        "call_count": np.bincount(group, minlength=count),
        "host_ns": sums(calls["duration_ns"].to_numpy()[rows], group, count),
        "kernel_count": sums(inside["kernel_count"], group, count),
        "device_ns": sums(inside["device_ns"], group, count),
    }
    return to_frame(GRAPH_SCHEMA, columns, "-host_ns")


def _self_nearest(nearest_row: Ints) -> Ints:
    return np.flatnonzero(nearest_row == np.arange(len(nearest_row)))


def _coded(texts: Objects) -> tuple[NDArray[Any], Ints]:
    """Return the distinct texts, and the index of each text among them; -1 for None."""
    codes, distinct = pd.factorize(texts)
    return np.array(distinct, dtype=object), codes.astype(np.int64)


def _number(compile_id: str, part: str) -> int:
    match = COMPILE_ID.fullmatch(compile_id)
    return int(match[part]) if match and match[part] else NONE


RESUMED = re.compile(
    r"^(?P<path>.+?)\(\d{1,9}\): torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d{1,9})$"
)
OWN = re.compile(
    # recorded by dynamo and its backends around a graph
    r"^(?:CompiledFunction|## Call CompiledFxGraph|Pregraph bytecode|AOTDispatcher|TorchDynamo"
    r"|Torch-Compiled Region)|dynamo_timed|^dynamo"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphBreaks:
    """Breaks in the window; the arrays are parallel, rows are of `host_calls`."""

    left: Ints
    """The region that was left."""
    entered: Ints
    """The region that was called from it."""
    start_ns: Ints
    """End of the last call of the region before the break: the start of Python."""
    between: tuple[str, ...]
    """Operators that ran between graphs, the most frequent first."""
    lines: tuple[SourceLine, ...]
    """Source lines of the breaks; empty without stacks."""

    def times(self, trace: Trace) -> Intervals:
        """Return the times of Python between two regions."""
        entered_ns = trace.host_calls["start_ns"].to_numpy()[self.entered]
        return intervals.union(self.start_ns, entered_ns)


@computed
def graph_breaks(trace: Trace) -> GraphBreaks:
    """Return every break of a compiled frame's graph."""
    calls, region = trace.host_calls, compile_events(trace).region
    span = window(trace)
    start = calls["start_ns"].to_numpy()
    inner = np.flatnonzero(region == np.arange(len(region)))
    inner = inner[(start[inner] >= span.start_ns) & (start[inner] < span.end_ns)]
    outer = np.append(region, NONE)[calls["parent"].to_numpy()[inner]]
    inner, outer = inner[outer >= 0], outer[outer >= 0]
    return GraphBreaks(
        left=outer,
        entered=inner,
        start_ns=_left_ns(trace, inner),
        between=_between(trace, inner),
        lines=_lines(trace) if len(inner) else (),
    )


def _left_ns(trace: Trace, inner: Ints) -> Ints:
    """Return the end of the previous call of each call's parent, without guard lookups."""
    calls = trace.host_calls
    parent, end = calls["parent"].to_numpy(), calls["end_ns"].to_numpy()
    around = parent[inner]
    is_lookup = name_mask(calls["name"], LOOKUP.__eq__)
    children = np.flatnonzero(np.isin(parent, around) & ~is_lookup)
    order = children[np.argsort(parent[children], kind="stable")]
    width = len(calls) + 1
    index = np.searchsorted(parent[order] * width + order, around * width + inner) - 1
    before = np.append(order, NONE)[index]
    has = (index >= 0) & (np.append(parent, NONE)[before] == around)
    began = calls["start_ns"].to_numpy()[around]
    return np.asarray(np.where(has, np.append(end, 0)[before], began))


def _between(trace: Trace, inner: Ints) -> tuple[str, ...]:
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    is_theirs = np.isin(parent, parent[inner]) & calls["is_operator"].to_numpy()
    codes = calls["name"].cat.codes.to_numpy()[is_theirs & ~name_mask(calls["name"], OWN.search)]
    if not len(codes):
        return ()
    count = np.bincount(codes)
    most = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    return tuple(str(calls["name"].cat.categories[code]) for code in most.tolist())


def _lines(trace: Trace) -> tuple[SourceLine, ...]:
    names = trace.python_calls["name"].cat.categories
    matches = (RESUMED.match(str(name)) for name in names)
    lines = {
        SourceLine(path=match["path"], line=int(match["line"]), function=match["function"])
        for match in matches
        if match
    }
    return tuple(sorted(lines, key=lambda line: (line.path, line.line)))
