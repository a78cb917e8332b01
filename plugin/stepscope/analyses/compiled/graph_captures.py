"""Operators of the kernels that graphs replay, from the recording of their capture.

A replay has one call of the host for all of its kernels: no operator, module or shape is recorded
with them. The recording of the capture (StreamBeginCapture to StreamEndCapture), in the same trace
or another trace of the run, has the operators and their launches, and no kernels, as those do not
run yet. The two are matched, in this order:

- *names*: as many launches as nodes, of the same kinds, and with the same names in the same order,
  where launches carry the kernel's name (ROCm's `kernel` argument);
- *order*: the same without names, where nodes have CUPTI's ids, which number them as captured, or
  run one after the other, and equal calls of an operator get equal kernels;
- *occurrences*: otherwise kernels whose name occurs as often in both, by their order.

Serving engines capture one graph a batch size, often with equal sequences of kernels. Where several
captures match, what they disagree on, such as shapes, is left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from stepscope.analyses.compiled.graph_launches import GRAPH, graph_launches
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.flops import nearest_with_work, operator_work
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
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import plain_values, run_table, to_frame
from stepscope.model.trace import Trace

MatchedBy = Literal["names", "order", "occurrences"]
LEAST_CONSISTENT = 0.9
"""Fraction of nodes whose kernel is the usual one of such calls: a library may choose another."""
COPY_CALL = re.compile(r"Memcpy")
MEMORY_SET_CALL = re.compile(r"Memset")
KINDS = {
    int(Kind.KERNEL): "kernel",
    int(Kind.COPY): "copy",
    int(Kind.MEMORY_SET): "memory set",
}
WHERE: Schema = (
    Column("worker", "object", "text", "Name of the trace's worker."),
    Column("span", "object", "text", "The trace's span."),
    GRAPH,
)
KERNELS: Schema = (
    *WHERE,
    Column("position", "int64", "count", "Position of the node in the graph, from 0: by CUPTI's"
           " node ids, else by start."),
    Column("kernel", "object", "text", "The kernel's name in short; the copy's or memory set's."),
    Column("full_name", "object", "text", "The name as the profiler wrote it."),
    Column("kind", "object", "text", "`kernel`, `copy` or `memory set`."),
    Column("replay_count", "int64", "count", "Complete replays of the graph."),
    Column("total_ns", "int64", "ns", "Sum of its durations in them."),
    Column("operator", "object", "text", "The operator that launched it in the capture; None: not"
           " matched, or captures disagree."),
    Column("module", "object", "text", "The innermost `nn.Module` around the operator."),
    Column("input_dims", "object", "text", "Shapes of the operator's inputs (JSON); None: captures"
           " disagree."),
    Column("matched_by", "object", "text", "`names`, `order` or `occurrences`; None: no capture"
           " matches."),
    Column("capture_count", "int64", "count", "Captures that match."),
)  # fmt: skip
OPERATORS: Schema = (
    *WHERE,
    Column("operator", "object", "text", "The operator; None: of kernels that are not matched."),
    Column("module", "object", "text", "The innermost `nn.Module` around it."),
    Column("input_dims", "object", "text", "Shapes of its inputs (JSON)."),
    Column("call_count", "int64", "count", "Calls in a replay."),
    Column("kernel_count", "int64", "count", "Kernels, copies and memory sets in a replay."),
    Column("replay_count", "int64", "count", "Complete replays of the graph."),
    Column("total_ns", "int64", "ns", "Sum of their durations in all replays."),
    Column("graph_share", "float64", "share", "Of the durations of all of the graph's nodes."),
    Column("flop_count", "float64", "count", "Operations of all replays; NaN: no formula, or"
           " shapes unknown."),
    Column("flops_per_second", "float64", "1/s", "Operations over `total_ns`."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Capture:
    """The launches of one capture, in order; all arrays are parallel."""

    kind: Ints
    name: Objects
    """The kernel's name; None where the call does not carry it."""
    operator: Objects
    module: Objects
    input_dims: Objects
    call: Ints
    """Number of the operator's call; -1: no operator."""
    flops: Floats
    """Operations of the operator's call; NaN: unknown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayedGraph:
    """The nodes of one graph, as its complete replays ran them."""

    graph: int
    replay_count: int
    kind: Ints
    name: Objects
    total_ns: Ints
    is_ordered: bool
    """Whether the order is that of the capture: by node ids, or one node after the other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphPart:
    """The captures and the replayed graphs of one trace."""

    worker: str
    span: str
    captures: tuple[Capture, ...]
    graphs: tuple[ReplayedGraph, ...]


def graph_part(trace: Trace) -> GraphPart:
    """Return what `graph_kernels` needs of a trace."""
    return GraphPart(
        worker=trace.worker,
        span=trace.span,
        captures=tuple(_captures(trace)),
        graphs=tuple(_graphs(trace)),
    )


def _captures(trace: Trace) -> Iterator[Capture]:
    calls = trace.runtime_calls
    names, begin_ns = calls["name"], calls["start_ns"].to_numpy()
    thread = calls["thread"].cat.codes.to_numpy()
    begins = np.flatnonzero(name_mask(names, GRAPH_CAPTURE_NAME.search))
    if not len(begins):
        return
    ends = np.flatnonzero(name_mask(names, GRAPH_CAPTURE_END_NAME.search))
    kind = _launch_kinds(calls)
    for begin in begins.tolist():
        after = ends[(thread[ends] == thread[begin]) & (begin_ns[ends] >= begin_ns[begin])]
        if not len(after):
            continue
        until_ns = begin_ns[after].min()
        is_inside = (kind >= 0) & (begin_ns > begin_ns[begin]) & (begin_ns < until_ns)
        rows = np.flatnonzero(is_inside & (thread == thread[begin]))
        if len(rows):
            yield _capture(trace, rows, kind[rows])


def _launch_kinds(calls: pd.DataFrame) -> Ints:
    """Return the kind of what each runtime call puts into a graph, or -1."""
    kind = np.full(len(calls), NONE, dtype=np.int64)
    kind[name_mask(calls["name"], COPY_CALL.search)] = int(Kind.COPY)
    kind[name_mask(calls["name"], MEMORY_SET_CALL.search)] = int(Kind.MEMORY_SET)
    kind[name_mask(calls["name"], LAUNCH_NAME.search)] = int(Kind.KERNEL)
    kind[name_mask(calls["name"], GRAPH_LAUNCH_NAME.search)] = NONE
    return kind


def _capture(trace: Trace, rows: Ints, kind: Ints) -> Capture:
    calls = trace.runtime_calls.iloc[rows]
    owner = links(trace).owner_of_call[rows]
    host = trace.host_calls
    worked = nearest_with_work(trace, owner)
    try:
        module = modules(trace)
        of_module = module.at(np.append(module.codes, NONE)[owner])
    except MissingDataError:
        of_module = np.full(len(rows), None, dtype=object)
    name = plain_values(trace.source.label("kernel", calls["event"].to_numpy()))
    return Capture(
        kind=kind,
        name=_where(kind == int(Kind.KERNEL), name),
        operator=_taken(plain_values(host["name"]), owner),
        module=of_module,
        input_dims=_taken(plain_values(host["input_dims"]), owner),
        call=np.where(owner >= 0, pd.factorize(owner)[0], NONE),
        flops=np.append(operator_work(trace).flops, np.nan)[worked],
    )


def _graphs(trace: Trace) -> Iterator[ReplayedGraph]:
    launches = graph_launches(trace)
    events = trace.device_events.iloc[launches.rows]
    start, duration = events["start_ns"].to_numpy(), events["duration_ns"].to_numpy()
    node = trace.source.whole("graph node id", events["event"].to_numpy())
    kind, name = events["kind"].to_numpy(), events["name"].cat
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
        begins = np.sort(start[rows], axis=1)
        ends = np.sort(start[rows] + duration[rows], axis=1)
        yield ReplayedGraph(
            graph=graph,
            replay_count=len(complete),
            kind=kind[rows[0]].astype(np.int64),
            name=texts[name.codes.to_numpy()[rows[0]]],
            total_ns=duration[rows].sum(axis=0),
            is_ordered=has_ids or bool((begins[:, 1:] >= ends[:, :-1]).all()),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeMatch:
    """The operators of a graph's nodes, by the captures that match."""

    operator: Objects
    module: Objects
    input_dims: Objects
    call: Ints
    """Number of the operator's call in the first capture that matches; -1: none."""
    flops: Floats
    matched_by: Objects
    capture_count: int


def match_nodes(graph: ReplayedGraph, captures: Sequence[Capture]) -> NodeMatch:
    """Return the operators of a graph's nodes, by the captures that match it."""
    alike = [of for of in captures if np.array_equal(of.kind, graph.kind)]
    named = [of for of in alike if _has_names(of)]
    by_names = [of for of in named if _names_agree(of, graph)]
    if by_names:
        return _agreed(graph, [(of, np.arange(len(graph.kind))) for of in by_names], "names")
    unnamed = [of for of in alike if not _has_names(of) and _is_consistent(of, graph)]
    if unnamed and graph.is_ordered:
        return _agreed(graph, [(of, np.arange(len(graph.kind))) for of in unnamed], "order")
    by_occurrence = [(of, _occurrences(of, graph)) for of in captures if _has_names(of)]
    most = max((int((at >= 0).sum()) for _, at in by_occurrence), default=0)
    best = [(of, at) for of, at in by_occurrence if most and (at >= 0).sum() == most]
    return _agreed(graph, best, "occurrences")


def _taken(texts: Objects, rows: Ints) -> Objects:
    """Return the texts of some rows; None for -1."""
    return np.asarray(np.array([*texts, None], dtype=object)[rows])


def _where(is_there: Mask, texts: Objects) -> Objects:
    """Return the texts where a mask is set, else None."""
    return np.array(np.where(is_there, texts, np.array(None)), dtype=object)


def _has_names(capture: Capture) -> bool:
    is_kernel = capture.kind == int(Kind.KERNEL)
    return bool(is_kernel.any()) and all(name is not None for name in capture.name[is_kernel])


def _names_agree(capture: Capture, graph: ReplayedGraph) -> bool:
    is_kernel = graph.kind == int(Kind.KERNEL)
    return bool((capture.name[is_kernel] == graph.name[is_kernel]).all())


def _is_consistent(capture: Capture, graph: ReplayedGraph) -> bool:
    """Return whether calls of one operator with equal shapes would have run equal kernels."""
    rows = pd.DataFrame(
        {"operator": capture.operator, "dims": capture.input_dims, "call": capture.call},
        dtype=object,
    )
    number = rows.groupby("call").cumcount()
    group, _ = statistics.group_rows(rows.assign(number=number), ("operator", "dims", "number"))
    names = pd.Series(graph.name, dtype=object).groupby(group)
    most = names.agg(lambda of: of.value_counts().iloc[0] if of.notna().any() else len(of))
    return bool(most.sum() >= LEAST_CONSISTENT * len(rows))


def _occurrences(capture: Capture, graph: ReplayedGraph) -> Ints:
    """Return the launch of each node whose name occurs as often in both, or -1."""
    launches = pd.Series(capture.name)
    nodes = pd.Series(_where(graph.kind == int(Kind.KERNEL), graph.name))
    captured, replayed = Counter(launches.dropna()), Counter(nodes.dropna())
    equal = {name for name, number in replayed.items() if captured[name] == number}
    at = np.full(len(nodes), NONE, dtype=np.int64)
    numbered = zip(launches, launches.groupby(launches).cumcount(), strict=True)
    launch_of = {of: index for index, of in enumerate(numbered)}
    for index, of in enumerate(zip(nodes, nodes.groupby(nodes).cumcount(), strict=True)):
        if of[0] in equal:
            at[index] = launch_of[of]
    return at


def _agreed(
    graph: ReplayedGraph, matches: Sequence[tuple[Capture, Ints]], matched_by: MatchedBy
) -> NodeMatch:
    count = len(graph.kind)
    if not matches:
        nothing: Objects = np.full(count, None, dtype=object)
        return NodeMatch(
            operator=nothing,
            module=nothing,
            input_dims=nothing,
            call=np.full(count, NONE),
            flops=np.full(count, np.nan),
            matched_by=nothing,
            capture_count=0,
        )
    (first, at), *others = matches
    texts = {}
    for name in ("operator", "module", "input_dims"):
        values = _taken(getattr(first, name), at)
        for capture, rows in others:
            values = _where(_taken(getattr(capture, name), rows) == values, values)
        texts[name] = values
    flops = np.append(first.flops, np.nan)[at]
    for capture, rows in others:
        flops = np.where(np.append(capture.flops, np.nan)[rows] == flops, flops, np.nan)
    return NodeMatch(
        **texts,
        call=np.append(first.call, NONE)[at],
        flops=flops,
        matched_by=np.array(
            [matched_by if row >= 0 else None for row in at.tolist()], dtype=object
        ),
        capture_count=len(matches),
    )


def _matches(parts: Sequence[GraphPart]) -> Iterator[tuple[GraphPart, ReplayedGraph, NodeMatch]]:
    """Yield each graph with its match: by captures of its trace, else by those of all traces."""
    everywhere = [capture for part in parts for capture in part.captures]
    for part in parts:
        for graph in part.graphs:
            match = match_nodes(graph, part.captures)
            yield part, graph, match if match.capture_count else match_nodes(graph, everywhere)


@run_table(
    "graph-kernels",
    KERNELS,
    graph_part,
    "One row per node of a recorded graph (CUDA or HIP), with the operator that launched it while"
    " the graph was captured, where a trace of the run has the capture.",
)
def graph_kernels(parts: Sequence[GraphPart]) -> pd.DataFrame:
    """Return one row per node, by trace, graph and position."""
    frames = [_kernel_rows(*of) for of in _matches(parts)]
    return pd.concat(frames, ignore_index=True) if frames else to_frame(KERNELS, _nothing(KERNELS))


def _nothing(schema: Schema) -> dict[str, list[Any]]:
    return {column.name: [] for column in schema}


def _kernel_rows(part: GraphPart, graph: ReplayedGraph, match: NodeMatch) -> pd.DataFrame:
    count = len(graph.kind)
    is_kernel = (graph.kind == int(Kind.KERNEL)).tolist()
    columns = {
        "worker": [part.worker] * count,
        "span": [part.span] * count,
        "graph": np.full(count, graph.graph),
        "position": np.arange(count),
        "kernel": [
            short(name) if kernel and name else name
            for name, kernel in zip(graph.name.tolist(), is_kernel, strict=True)
        ],
        "full_name": graph.name,
        "kind": [KINDS.get(kind) for kind in graph.kind.tolist()],
        "replay_count": np.full(count, graph.replay_count),
        "total_ns": graph.total_ns,
        "operator": match.operator,
        "module": match.module,
        "input_dims": match.input_dims,
        "matched_by": match.matched_by,
        "capture_count": np.full(count, match.capture_count),
    }
    return to_frame(KERNELS, columns)


@run_table(
    "graph-operators",
    OPERATORS,
    graph_part,
    "One row per operator, module and shapes whose kernels a recorded graph (CUDA or HIP) replays:"
    " their time and arithmetic, where a trace of the run has the graph's capture.",
)
def graph_operators(parts: Sequence[GraphPart]) -> pd.DataFrame:
    """Return one row per operator of each graph, most time first; without a match, one row."""
    frames = [_operator_rows(*of) for of in _matches(parts)]
    if not frames:
        return to_frame(OPERATORS, _nothing(OPERATORS))
    rows = pd.concat(frames, ignore_index=True)
    order = ["worker", "span", "graph", "total_ns"]
    return rows.sort_values(order, ascending=[True, True, True, False], ignore_index=True)


def _operator_rows(part: GraphPart, graph: ReplayedGraph, match: NodeMatch) -> pd.DataFrame:
    texts = {name: getattr(match, name) for name in ("operator", "module", "input_dims")}
    keys = pd.DataFrame(texts, dtype=object)
    group, first = statistics.group_rows(keys, keys.columns)
    count = len(first)
    total = statistics.sums(graph.total_ns, group, count)
    calls = pd.DataFrame({"group": group, "call": match.call, "flops": match.flops})
    calls = calls[calls["call"] != NONE].drop_duplicates(["group", "call"])
    flops = np.full(count, np.nan)
    of_calls = calls.groupby("group")["flops"].agg(lambda of: of.sum(skipna=False))
    flops[of_calls.index.to_numpy()] = of_calls.to_numpy() * graph.replay_count
    flops[[operator is None for operator in match.operator[first].tolist()]] = np.nan
    columns = {
        "worker": [part.worker] * count,
        "span": [part.span] * count,
        "graph": np.full(count, graph.graph),
        **{name: values[first] for name, values in texts.items()},
        "call_count": np.bincount(calls["group"], minlength=count),
        "kernel_count": np.bincount(group, minlength=count),
        "replay_count": np.full(count, graph.replay_count),
        "total_ns": total,
        "graph_share": statistics.ratio(total, np.full(count, graph.total_ns.sum())),
        "flop_count": flops,
        "flops_per_second": flops / np.where(total > 0, total / 1e9, np.nan),
    }
    return to_frame(OPERATORS, columns)
