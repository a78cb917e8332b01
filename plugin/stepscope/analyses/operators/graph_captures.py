"""Replayed graphs (CUDA, HIP), and the launches from which they may have been captured.

A replay has one call of the host for all of its kernels: no operator, module or shape is recorded
with them. Two other recordings have these, in the same trace or another trace of the run:

- the capture of the graph (StreamBeginCapture to StreamEndCapture), with operators and their
  launches, and without kernels, as those do not run yet;
- an eager pass, such as the warm-up before the capture, whose kernels ran.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.graph_launches import graph_launches
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.flops import counted_products, operator_work, with_work_inside
from stepscope.analyses.operators.grouping import modules
from stepscope.base.errors import MissingDataError
from stepscope.dialects import (
    GRAPH_CAPTURE_END_NAME,
    GRAPH_CAPTURE_NAME,
    GRAPH_LAUNCH_NAME,
    LAUNCH_NAME,
    Kind,
)
from stepscope.model.arrays import NONE, Floats, Ints, Mask, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import plain_values, texts_at
from stepscope.model.trace import Trace, computed

COPY_CALL = re.compile(r"Memcpy")
MEMORY_SET_CALL = re.compile(r"Memset")
MOST_EAGER = 20_000
"""Launches outside captures, from the start of the trace, that are compared with graphs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Launches:
    """Launches of operators, in order; all arrays are parallel."""

    kind: Ints
    name: Objects
    """The kernel's name; None where it is not recorded."""
    grid: Objects
    """Blocks in x, y, z (JSON); None in a capture, as in the next."""
    block: Objects
    operator: Objects
    module: Objects
    input_dims: Objects
    call: Ints
    """Number of the operator's call; -1: no operator."""
    call_size: Ints
    """Launches of that call."""
    flops: Floats
    """Operations of the operator's call; NaN: unknown."""
    owner: Ints
    """Row of the operator's call in `host_calls` of the recording's trace; -1: no operator."""

    def __len__(self) -> int:
        """Return the number of launches."""
        return len(self.kind)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayedGraph:
    """The nodes of one graph, as its complete replays ran them."""

    graph: int
    replay_count: int
    kind: Ints
    name: Objects
    grid: Objects
    block: Objects
    total_ns: Ints
    is_ordered: bool
    """Whether the order is that of the capture: by node ids, or one node after the other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphPart:
    """The captures, eager launches and replayed graphs of one trace."""

    worker: str
    span: str
    captures: tuple[Launches, ...]
    eager: Launches
    graphs: tuple[ReplayedGraph, ...]


@computed
def graph_part(trace: Trace) -> GraphPart:
    """Return the captures, eager launches and replayed graphs of a trace."""
    return GraphPart(
        worker=trace.worker,
        span=trace.span,
        captures=tuple(_captures(trace)),
        eager=_eager_launches(trace),
        graphs=tuple(graph for graph, _ in replayed_graphs(trace)),
    )


def _captures(trace: Trace) -> Iterator[Launches]:
    calls = trace.runtime_calls
    names, begin_ns = calls["name"], calls["start_ns"].to_numpy()
    thread = calls["thread"].cat.codes.to_numpy()
    begins = np.flatnonzero(name_mask(names, GRAPH_CAPTURE_NAME.search))
    if not len(begins):
        return
    ends = np.flatnonzero(name_mask(names, GRAPH_CAPTURE_END_NAME.search))
    kind = _launch_kinds(calls)
    launches = np.flatnonzero(kind >= 0)
    for of in np.unique(thread[begins]).tolist():
        in_thread = launches[thread[launches] == of]
        until_ns = np.sort(begin_ns[ends[thread[ends] == of]])
        for begin in begins[thread[begins] == of].tolist():
            end = np.searchsorted(until_ns, begin_ns[begin])
            if end == len(until_ns):
                continue
            first, last = np.searchsorted(begin_ns[in_thread], (begin_ns[begin], until_ns[end]))
            if first < last:
                yield _capture(trace, in_thread[first:last], kind[in_thread[first:last]])


def _launch_kinds(calls: pd.DataFrame) -> Ints:
    """Return the kind of what each runtime call puts into a graph, or -1."""
    kind = np.full(len(calls), NONE, dtype=np.int64)
    kind[name_mask(calls["name"], COPY_CALL.search)] = int(Kind.COPY)
    kind[name_mask(calls["name"], MEMORY_SET_CALL.search)] = int(Kind.MEMORY_SET)
    kind[name_mask(calls["name"], LAUNCH_NAME.search)] = int(Kind.KERNEL)
    kind[name_mask(calls["name"], GRAPH_LAUNCH_NAME.search)] = NONE
    return kind


def _capture(trace: Trace, rows: Ints, kind: Ints) -> Launches:
    events = trace.runtime_calls["event"].to_numpy()[rows]
    name = plain_values(trace.source.label("kernel", events))
    nothing: Objects = np.full(len(rows), None, dtype=object)
    name = where(kind == int(Kind.KERNEL), name)
    return _launches(trace, links(trace).owner_of_call[rows], kind, (name, nothing, nothing))


def _eager_launches(trace: Trace) -> Launches:
    """Return the first launches whose work ran outside graphs, in the order of their calls."""
    linked, events = links(trace), trace.device_events
    call = linked.call_of_device_event
    rows = np.flatnonzero((call >= 0) & (linked.owner_of_device_event >= 0))
    rows = rows[~np.isin(rows, graph_launches(trace).rows)]
    called_ns = trace.runtime_calls["start_ns"].to_numpy()[call[rows]]
    rows = rows[np.argsort(called_ns, kind="stable")][:MOST_EAGER]
    kind = events["kind"].to_numpy()[rows].astype(np.int64)
    texts = (texts_at(events["name"], rows), *_geometry(trace, rows))
    return _launches(trace, linked.owner_of_device_event[rows], kind, texts)


def _geometry(trace: Trace, rows: Ints) -> tuple[Objects, Objects]:
    """Return the grids and blocks of device events."""
    events = trace.device_events["event"].to_numpy()[rows]
    grid, block = (plain_values(trace.source.label(key, events)) for key in ("grid", "block"))
    return grid, block


def _launches(
    trace: Trace, owner: Ints, kind: Ints, texts: tuple[Objects, Objects, Objects]
) -> Launches:
    """Return launches with their operators, of names, grids and blocks."""
    host, (name, grid, block) = trace.host_calls, texts
    call = pd.factorize(owner)[0].astype(np.int64)
    return Launches(
        kind=kind,
        name=name,
        grid=grid,
        block=block,
        operator=texts_at(host["name"], owner),
        module=_modules(trace, owner),
        input_dims=texts_at(host["input_dims"], owner),
        call=np.where(owner >= 0, call, NONE),
        call_size=np.bincount(call, minlength=1)[call],
        flops=np.append(_product_flops(trace), np.nan)[owner],
        owner=owner,
    )


def _modules(trace: Trace, rows: Ints) -> Objects:
    """Return the modules of host calls; None where there is none, or none was recorded."""
    try:
        labels = modules(trace)
    except MissingDataError:
        return np.full(len(rows), None, dtype=object)
    return labels.at(np.append(labels.codes, NONE)[rows])


@computed
def _product_flops(trace: Trace) -> Floats:
    """Return the operations of each call of `host_calls` that did them itself; else NaN.

    Of products that are inside each other, the innermost did the work.
    """
    products = counted_products(trace)
    products[with_work_inside(trace, products)] = False
    return np.where(products, operator_work(trace).flops, np.nan)


@computed
def replayed_graphs(trace: Trace) -> tuple[tuple[ReplayedGraph, Ints], ...]:
    """Return each graph, and the rows of `device_events` of its nodes, a line per replay."""
    return tuple(_graphs(trace))


def _graphs(trace: Trace) -> Iterator[tuple[ReplayedGraph, Ints]]:
    launches = graph_launches(trace)
    events = trace.device_events.iloc[launches.rows]
    start, duration = events["start_ns"].to_numpy(), events["duration_ns"].to_numpy()
    node = trace.source.whole("graph node id", events["event"].to_numpy())
    kind, name = events["kind"].to_numpy(), events["name"].cat
    grid, block = _geometry(trace, launches.rows)
    texts = np.array([*name.categories, None], dtype=object)
    size = np.bincount(launches.launch, minlength=len(launches.calls))
    first = np.cumsum(size) - size
    for graph in range(int(launches.graph.max(initial=-1)) + 1):
        of_graph = np.flatnonzero(launches.graph == graph)
        fullest = int(size[of_graph].max())
        complete = of_graph[size[of_graph] == fullest]
        if not fullest:
            continue
        rows = first[complete][:, None] + np.arange(fullest)
        ids = node[rows]
        has_ids = bool((ids > 0).all()) and len(np.unique(ids[0])) == fullest
        order = np.argsort(ids if has_ids else start[rows], axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
        codes = name.codes.to_numpy()[rows]
        rows = rows[(codes == codes[0]).all(axis=1)]  # others ran in another order
        begins = np.sort(start[rows], axis=1)
        ends = np.sort(start[rows] + duration[rows], axis=1)
        replayed = ReplayedGraph(
            graph=graph,
            replay_count=len(rows),
            kind=kind[rows[0]].astype(np.int64),
            name=texts[name.codes.to_numpy()[rows[0]]],
            grid=grid[rows[0]],
            block=block[rows[0]],
            total_ns=duration[rows].sum(axis=0),
            is_ordered=has_ids or bool((begins[:, 1:] >= ends[:, :-1]).all()),
        )
        yield replayed, launches.rows[rows]


def where(is_there: Mask, texts: Objects) -> Objects:
    """Return the texts where a mask is set, else None."""
    return np.array(np.where(is_there, texts, np.array(None)), dtype=object)
