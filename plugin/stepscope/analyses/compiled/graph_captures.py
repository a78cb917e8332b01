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
from stepscope.analyses.operators.flops import (
    counted_products,
    operator_work,
    with_work_inside,
)
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
from stepscope.model.table import plain_values, run_table, texts_at, to_frame
from stepscope.model.trace import Trace

MatchedBy = Literal["names", "order", "occurrences"]
LEAST_CONSISTENT = 0.9
"""Fraction of nodes whose kernel is the usual one of such calls: a library may choose another."""
LEAST_REPEATED = 0.25
"""Fraction of launches like another one of the capture: an equal number of nodes is no proof."""
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
    call_size: Ints
    """Launches of that call."""
    alike: Ints
    """Equal numbers of launches that operators of one name and shapes make at one place."""
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
    launches = np.flatnonzero(kind >= 0)
    texts = _operator_texts(trace)
    for of in np.unique(thread[begins]).tolist():
        in_thread = launches[thread[launches] == of]
        until_ns = np.sort(begin_ns[ends[thread[ends] == of]])
        for begin in begins[thread[begins] == of].tolist():
            end = np.searchsorted(until_ns, begin_ns[begin])
            if end == len(until_ns):
                continue
            first, last = np.searchsorted(begin_ns[in_thread], (begin_ns[begin], until_ns[end]))
            if first < last:
                yield _capture(trace, in_thread[first:last], kind[in_thread[first:last]], texts)


def _launch_kinds(calls: pd.DataFrame) -> Ints:
    """Return the kind of what each runtime call puts into a graph, or -1."""
    kind = np.full(len(calls), NONE, dtype=np.int64)
    kind[name_mask(calls["name"], COPY_CALL.search)] = int(Kind.COPY)
    kind[name_mask(calls["name"], MEMORY_SET_CALL.search)] = int(Kind.MEMORY_SET)
    kind[name_mask(calls["name"], LAUNCH_NAME.search)] = int(Kind.KERNEL)
    kind[name_mask(calls["name"], GRAPH_LAUNCH_NAME.search)] = NONE
    return kind


@dataclass(frozen=True, kw_only=True, eq=False)
class _OperatorTexts:
    """Of each row of `host_calls`, and of none in the last place."""

    name: Objects
    module: Objects
    input_dims: Objects
    flops: Floats


def _operator_texts(trace: Trace) -> _OperatorTexts:
    host = trace.host_calls
    everything = np.append(np.arange(len(host)), NONE)
    try:
        labels = modules(trace)
        module = labels.at(np.append(labels.codes, NONE))
    except MissingDataError:
        module = np.full(len(everything), None, dtype=object)
    return _OperatorTexts(
        name=texts_at(host["name"], everything),
        module=module,
        input_dims=texts_at(host["input_dims"], everything),
        flops=np.append(_product_flops(trace), np.nan),
    )


def _capture(trace: Trace, rows: Ints, kind: Ints, texts: _OperatorTexts) -> Capture:
    owner = links(trace).owner_of_call[rows]
    events = trace.runtime_calls["event"].to_numpy()[rows]
    name = plain_values(trace.source.label("kernel", events))
    call, _ = pd.factorize(owner)
    call = call.astype(np.int64)
    launch = pd.DataFrame(
        {
            "operator": texts.name[owner],
            "dims": texts.input_dims[owner],
            "number": pd.Series(call).groupby(call).cumcount(),
        },
        dtype=object,
    )
    return Capture(
        kind=kind,
        name=_where(kind == int(Kind.KERNEL), name),
        operator=texts.name[owner],
        module=texts.module[owner],
        input_dims=texts.input_dims[owner],
        call=np.where(owner >= 0, call, NONE),
        call_size=np.bincount(call, minlength=1)[call],
        alike=statistics.group_rows(launch, launch.columns)[0],
        flops=texts.flops[owner],
    )


def _product_flops(trace: Trace) -> Floats:
    """Return the operations of each call of `host_calls` that did them itself; else NaN.

    Of products that are inside each other, the innermost did the work.
    """
    products = counted_products(trace)
    products[with_work_inside(trace, products)] = False
    return np.where(products, operator_work(trace).flops, np.nan)


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
        codes = name.codes.to_numpy()[rows]
        rows = rows[(codes == codes[0]).all(axis=1)]  # others ran in another order
        begins = np.sort(start[rows], axis=1)
        ends = np.sort(start[rows] + duration[rows], axis=1)
        yield ReplayedGraph(
            graph=graph,
            replay_count=len(rows),
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
    call_size: Ints
    """Launches of that call in the capture."""
    flops: Floats
    matched_by: Objects
    capture_count: int


class Captures:
    """Captures, by the kinds of their launches."""

    def __init__(self, captures: Sequence[Capture]) -> None:
        self.named = [of for of in captures if _has_names(of)]
        self._by_kinds: dict[bytes, list[Capture]] = {}
        for of in captures:
            self._by_kinds.setdefault(of.kind.tobytes(), []).append(of)

    def of_kinds(self, kind: Ints) -> list[Capture]:
        """Return the captures with launches of these kinds in this order."""
        return self._by_kinds.get(kind.tobytes(), [])


def match_nodes(graph: ReplayedGraph, captures: Captures) -> NodeMatch:
    """Return the operators of a graph's nodes, by the captures that match it."""
    alike = captures.of_kinds(graph.kind)
    named = [of for of in alike if _has_names(of)]
    by_names = [of for of in named if _names_agree(of, graph)]
    if by_names:
        return _agreed(graph, [(of, np.arange(len(graph.kind))) for of in by_names], "names")
    unnamed = [of for of in alike if graph.is_ordered and not _has_names(of)]
    unnamed = [of for of in unnamed if _is_consistent(of, graph)]
    if unnamed:
        return _agreed(graph, [(of, np.arange(len(graph.kind))) for of in unnamed], "order")
    by_occurrence = [(of, _occurrences(of, graph)) for of in captures.named]
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
    """Return whether launches that are alike would have run equal kernels, and many are alike."""
    size = np.bincount(capture.alike)
    if (size[capture.alike] > 1).mean() < LEAST_REPEATED:
        return False
    names, distinct = pd.factorize(graph.name)
    pairs, number = np.unique(capture.alike * (len(distinct) + 1) + names + 1, return_counts=True)
    most = np.zeros(len(size), dtype=np.int64)
    np.maximum.at(most, pairs // (len(distinct) + 1), number)
    return bool(most.sum() >= LEAST_CONSISTENT * len(capture.alike))


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
            call_size=np.zeros(count, dtype=np.int64),
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
        call_size=np.append(first.call_size, 0)[at],
        flops=flops,
        matched_by=np.array(
            [matched_by if row >= 0 else None for row in at.tolist()], dtype=object
        ),
        capture_count=len(matches),
    )


def _matches(parts: Sequence[GraphPart]) -> Iterator[tuple[GraphPart, ReplayedGraph, NodeMatch]]:
    """Yield each graph with its match: by captures of its trace, else by those of all traces."""
    everywhere = Captures([capture for part in parts for capture in part.captures])
    for part in parts:
        captures = Captures(part.captures)
        for graph in part.graphs:
            match = match_nodes(graph, captures)
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
    nodes = pd.DataFrame({"group": group, "call": match.call, "size": match.call_size})
    nodes["flops"] = match.flops
    nodes = nodes[nodes["call"] != NONE]
    calls = nodes.groupby(["group", "call"]).agg(
        matched=("size", "size"), size=("size", "first"), flops=("flops", "first")
    )
    # of a call of which some kernels are not matched, the time is not known
    calls.loc[calls["matched"] < calls["size"], "flops"] = np.nan
    calls = calls.reset_index()
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
