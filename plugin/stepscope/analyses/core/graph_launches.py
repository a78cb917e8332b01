"""Launches of recorded graphs (CUDA graphs, HIP graphs), and the device events of each replay.

A replay's device events share the correlation of the call that launched it. Graphs are identified
by `graph id` (CUPTI), else by what all replays of a graph share: the sequence of events, with their
grids and blocks. Graphs of several batch sizes often have kernels of the same names.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import (
    duration_columns,
    extremes,
    group_rows,
    ratio,
    sums,
)
from stepscope.analyses.core.links import links
from stepscope.dialects import GRAPH_LAUNCH_NAME, Kind
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

GRAPH = Column("graph", "int64", "id", "Number of the graph, from 0 in order of first launch.")
GRAPH_ID = Column("graph_id", "int64", "id", "CUPTI's `graph id`; -1: not recorded.")
HOST = Column("host_ns", "int64", "ns", "Time of the host in launch calls.")
SPAN = Column("device_span_ns", "int64", "ns", "First event's start to last event's end.")
BUSY = Column("device_busy_ns", "int64", "ns", "Time in which any of a replay's events runs.")
GAP = Column("gap_ns", "int64", "ns", "Time in the span in which none of them runs.")
SCHEMA: Schema = (
    Column("event", "int64", "id", "The launch call's index in the file."),
    Column("name", "object", "text", "The launch call's name."),
    Column("thread", "object", "text", "The host thread, as `pid/tid`."),
    Column("start_ns", "int64", "ns", "Start of the call, from the trace's first event."),
    Column("host_ns", "int64", "ns", "Duration of the call."),
    GRAPH,
    GRAPH_ID,
    Column("device", "int64", "id", "The device of the replay; -1: no recorded event."),
    Column("kernel_count", "int64", "count", "Kernels of the replay."),
    Column("event_count", "int64", "count", "Kernels, copies and memory sets of the replay."),
    Column("missing_count", "int64", "count", "Events fewer than in the graph's fullest replay."),
    Column("launch_delay_ns", "float64", "ns", "From the call's start to the first event."),
    SPAN,
    BUSY,
    GAP,
)
GRAPH_SCHEMA: Schema = (
    GRAPH,
    GRAPH_ID,
    Column("replay_count", "int64", "count", "Launches of it."),
    Column("kernel_count", "int64", "count", "Kernels of its fullest replay."),
    Column("event_count", "int64", "count", "Device events of its fullest replay."),
    Column("under_recorded_count", "int64", "count", "Replays with fewer events than that."),
    HOST,
    SPAN,
    BUSY,
    GAP,
    Column("busy_share", "float64", "share", "Busy time of the spans; NaN: no events."),
    Column("kernels_per_second", "float64", "per second", "Kernels over the spans; NaN: none."),
)
NODE_SCHEMA: Schema = (
    GRAPH,
    GRAPH_ID,
    Column("position", "int64", "count", "Position in the replay by start, from 0."),
    Column("node_id", "int64", "id", "CUPTI's `graph node id`; -1: not recorded."),
    Column("name", "object", "text", "The device event's name."),
    Column("replay_count", "int64", "count", "Replays with this event at this position."),
    Column("total_ns", "int64", "ns", "Sum of its durations."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "int64", "ns", "Shortest duration."),
    Column("max_ns", "int64", "ns", "Longest duration."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphLaunches:
    """Launches of graphs in the order they began, and the device events of their replays."""

    calls: Ints
    """Rows of `runtime_calls`."""
    graph: Ints
    """Each launch's graph."""
    graph_id: Ints
    """Each launch's `graph id`, or -1."""
    launch: Ints
    """For each device event, an index in `calls`; ascending."""
    rows: Ints
    """The device events (`device_events` rows), in the order they began in each launch."""
    position: Ints
    """Each event's position in its launch, from 0."""


@computed
def graph_launches(trace: Trace) -> GraphLaunches:
    """Return every launch of a graph, with its device events."""
    runtime = trace.runtime_calls
    calls = np.flatnonzero(name_mask(runtime["name"], GRAPH_LAUNCH_NAME.search))
    index = np.full(len(runtime) + 1, NONE, dtype=np.int64)  # the last is for "no call"
    index[calls] = np.arange(len(calls))
    of_event = index[links(trace).call_of_device_event]
    rows = np.flatnonzero(of_event >= 0)
    rows = rows[np.argsort(of_event[rows], kind="stable")]
    launch = of_event[rows]
    first = np.searchsorted(launch, np.arange(len(calls)))
    graph_id = np.full(len(calls), NONE, dtype=np.int64)
    written = trace.source.whole("graph id", trace.device_events["event"].to_numpy()[rows])
    np.maximum.at(graph_id, launch, np.where(written > 0, written, NONE))
    position = np.arange(len(rows)) - first[launch]
    has_id = graph_id >= 0
    contents = _contents(trace, rows, launch, position, len(calls))
    key = np.where(has_id, graph_id.astype(np.uint64), contents)
    codes, _ = pd.factorize(key)
    graph, _ = pd.factorize(2 * codes + has_id)
    return GraphLaunches(
        calls=calls,
        graph=graph.astype(np.int64),
        graph_id=graph_id,
        launch=launch,
        rows=rows,
        position=position,
    )


def _contents(
    trace: Trace,
    rows: Ints,
    launch: Ints,
    position: Ints,
    count: int,
) -> NDArray[np.uint64]:
    events = trace.device_events["event"].to_numpy()[rows]
    geometry = (trace.source.label(key, events).codes for key in ("grid", "block"))
    mixed = _scattered(position.astype(np.uint64))
    for codes in (trace.device_events["name"].cat.codes.to_numpy()[rows], *geometry):
        mixed = _scattered(mixed ^ np.asarray(codes).astype(np.int64).view("u8"))
    hashes = np.zeros(count, dtype=np.uint64)
    np.add.at(hashes, launch, mixed)
    return hashes


def _scattered(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 hash bits of each number (the finaliser of splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


@public_table(
    "graph-launches",
    SCHEMA,
    "One row per launch of a recorded graph (CUDA or HIP): the host's call, and the replay on the"
    " device.",
)
@computed
def graph_launch_table(trace: Trace) -> pd.DataFrame:
    """Return one row per launch, in the order they began."""
    launches = graph_launches(trace)
    calls = trace.runtime_calls.iloc[launches.calls]
    events = trace.device_events.iloc[launches.rows]
    count = len(launches.calls)
    start, end = events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
    begin, _ = extremes(start, launches.launch, count)
    _, until = extremes(end, launches.launch, count)
    busy = _busy(start, end, launches.launch, count)
    event_count = np.bincount(launches.launch, minlength=count)
    _, fullest = extremes(event_count, launches.graph, int(launches.graph.max(initial=-1)) + 1)
    _, device = extremes(events["device"].to_numpy(), launches.launch, count)
    is_kernel = (events["kind"] == int(Kind.KERNEL)).to_numpy()
    has = event_count > 0
    called = calls["start_ns"].to_numpy()
    columns: dict[str, NDArray[Any]] = {
        "event": calls["event"].to_numpy(),
        "name": plain_values(calls["name"]),
        "thread": plain_values(calls["thread"]),
        "start_ns": called,
        "host_ns": calls["duration_ns"].to_numpy(),
        "graph": launches.graph,
        "graph_id": launches.graph_id,
        "device": np.where(has, device, NONE),
        "kernel_count": np.bincount(launches.launch[is_kernel], minlength=count),
        "event_count": event_count,
        "missing_count": fullest[launches.graph] - event_count,
        "launch_delay_ns": np.where(has, begin - called, np.nan),
        "device_span_ns": until - begin,
        "device_busy_ns": busy,
        "gap_ns": until - begin - busy,
    }
    return to_frame(SCHEMA, columns)


def _busy(start: Ints, end: Ints, launch: Ints, count: int) -> Ints:
    """Return the busy time of each launch's events; events are by launch, then start."""
    until = pd.Series(end).groupby(launch).cummax().to_numpy()
    before = np.append(until[:1], until[:-1])
    is_first = np.append(True, launch[1:] != launch[:-1])[: len(launch)]
    begin = np.where(is_first, start, np.maximum(start, before))
    return sums(np.maximum(end - begin, 0), launch, count)


@public_table(
    "graphs",
    GRAPH_SCHEMA,
    "One row per recorded graph: its replays, their kernels, and how much of their time the"
    " device worked.",
)
@computed
def graph_table(trace: Trace) -> pd.DataFrame:
    """Return one row per graph, in the order of their first launches."""
    launches = graph_launch_table(trace)
    graph = launches["graph"].to_numpy()
    count = int(graph.max(initial=-1)) + 1
    added = {
        name: sums(launches[name].to_numpy(), graph, count)
        for name in ("host_ns", "device_span_ns", "device_busy_ns", "gap_ns", "kernel_count")
    }
    span = added["device_span_ns"]
    rate = ratio(added.pop("kernel_count") * 1e9, span)
    _, graph_id = extremes(launches["graph_id"].to_numpy(), graph, count)
    _, kernels = extremes(launches["kernel_count"].to_numpy(), graph, count)
    _, events = extremes(launches["event_count"].to_numpy(), graph, count)
    short = launches["missing_count"].to_numpy() > 0
    columns: dict[str, NDArray[Any]] = {
        "graph": np.arange(count),
        "graph_id": graph_id,
        "replay_count": np.bincount(graph, minlength=count),
        "kernel_count": kernels,
        "event_count": events,
        "under_recorded_count": np.bincount(graph[short], minlength=count),
        **added,
        "busy_share": ratio(added["device_busy_ns"], span),
        "kernels_per_second": rate,
    }
    return to_frame(GRAPH_SCHEMA, columns)


@public_table(
    "graph-nodes",
    NODE_SCHEMA,
    "One row per node of a recorded graph: the kernel, copy or memory set, and its duration in"
    " the replays.",
)
@computed
def graph_node_table(trace: Trace) -> pd.DataFrame:
    """Return one row per graph and node: by node id, else by position in the replay."""
    launches = graph_launches(trace)
    events = trace.device_events.iloc[launches.rows]
    written = trace.source.whole("graph node id", events["event"].to_numpy())
    node = np.where(written > 0, written, NONE)
    name = events["name"].cat.codes.to_numpy()
    graph = launches.graph[launches.launch]
    unidentified = np.where(node >= 0, NONE, launches.position)
    keys = pd.DataFrame({"graph": graph, "node": node, "place": unidentified, "name": name})
    group, first = group_rows(keys, keys.columns)
    count = len(first)
    duration = events["duration_ns"].to_numpy()
    position, _ = extremes(launches.position, group, count)
    columns: dict[str, NDArray[Any]] = {
        "graph": graph[first],
        "graph_id": launches.graph_id[launches.launch][first],
        "position": position,
        "node_id": node[first],
        "name": plain_values(events["name"])[first],
        "replay_count": np.bincount(group, minlength=count),
        **duration_columns(NODE_SCHEMA, duration, group, count),
    }
    return to_frame(NODE_SCHEMA, columns, "graph", "position")
