"""Tables of the operators, modules and shapes of the kernels that graphs replay."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.graph_launches import GRAPH
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.operators.graph_captures import GraphPart, ReplayedGraph, graph_part
from stepscope.analyses.operators.graph_matching import NodeMatch, matches
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

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
    Column("operator", "object", "text", "The operator that launched it in the capture, or in an"
           " eager pass; None: not matched, or recordings disagree."),
    Column("module", "object", "text", "The innermost `nn.Module` around the operator."),
    Column("input_dims", "object", "text", "Shapes of the operator's inputs (JSON); None: captures"
           " disagree, or none fits the grids."),
    Column("matched_by", "object", "text", "`names`, `order` or `occurrences` of a capture, or"
           " `eager`: launches outside captures with the same kernels and grids in the same order;"
           " None: nothing matches."),
    Column("capture_count", "int64", "count", "Captures, or eager passes, that match."),
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


@run_table(
    "graph-kernels",
    KERNELS,
    graph_part,
    "One row per node of a recorded graph (CUDA or HIP), with the operator that launched it while"
    " the graph was captured, where a trace of the run has the capture, or an eager pass.",
)
def graph_kernels(parts: Sequence[GraphPart]) -> pd.DataFrame:
    """Return one row per node, by trace, graph and position."""
    frames = [_kernel_rows(*of) for of in matches(parts)]
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
    " their time and arithmetic, where a trace of the run has the graph's capture, or an eager"
    " pass.",
)
def graph_operators(parts: Sequence[GraphPart]) -> pd.DataFrame:
    """Return one row per operator of each graph, most time first; without a match, one row."""
    frames = [_operator_rows(*of) for of in matches(parts)]
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
