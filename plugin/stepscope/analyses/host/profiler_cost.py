"""Cost of recording and of debugging: the profiler's work, and torch's anomaly detection.

With `torch.autograd.set_detect_anomaly(True)` the engine checks each result of the backward pass
for NaN (`torch/csrc/autograd/engine.cpp`, `call_function`): `aten::isnan`, then
`aten::_is_any_true` (`aten::any` before torch 2.0) and `aten::item`, directly in the engine's
range. In the forward pass each node stores the Python stack (`python_anomaly_mode.cpp`), in the
self time of the operator that makes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.window import window
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

OF_THE_PROGRAM = frozenset(
    {
        "Lazy Function Loading",
        "Runtime Triggered Module Loading",
        "Driver Compiler",
        "Command Buffer Full",
    }
)
"""CUPTI reports these as overhead, though the program needs them: loading and compiling kernels,
and waiting for room in the queue of launches."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProfilerCost:
    """Cost in the window."""

    overhead: Intervals
    """Times of the profiler's own work (`overhead` events: buffers requested and flushed)."""
    overhead_ns: Mapping[str, int]
    """The same by event name, in descending order; concurrent events count separately."""
    python_per_operator: float
    """Recorded Python functions per operator: each costs the host about a microsecond."""


@computed
def profiler_cost(trace: Trace) -> ProfilerCost:
    """Return the cost of recording (CUPTI's `CUpti_ActivityOverhead`, as kineto files it)."""
    frame = _overheads(trace, trace.source.rows(Kind.OVERHEAD))
    span = window(trace)
    overhead_ns: dict[str, int] = {}
    for name in frame:
        clipped = intervals.clip(frame[name], span.device_start_ns, span.device_end_ns)
        overhead_ns[name] = intervals.duration_ns(clipped)
    operators = int(trace.host_calls["is_operator"].sum())
    python_calls = len(trace.source.rows(Kind.PYTHON_CALL))
    overhead = intervals.clip(
        intervals.merged(*frame.values()), span.device_start_ns, span.device_end_ns
    )
    return ProfilerCost(
        overhead=overhead,
        overhead_ns=dict(sorted(overhead_ns.items(), key=lambda item: -item[1])),
        python_per_operator=python_calls / max(1, operators),
    )


def _overheads(trace: Trace, rows: Ints) -> dict[str, Intervals]:
    """Return the times of each kind of overhead, without the program's own."""
    timing = trace.source.timing(rows)
    start, end, names = timing["start_ns"], timing["end_ns"], timing["name"]
    return {
        str(name): intervals.union(start[names.codes == code], end[names.codes == code])
        for code, name in enumerate(names.categories)
        if str(name) not in OF_THE_PROGRAM
    }


ENGINE = "autograd::engine::evaluate_function"
NAN_CHECK = "aten::isnan"
CHECK_NAMES = frozenset({NAN_CHECK, "aten::_is_any_true", "aten::any", "aten::item"})


@dataclass(frozen=True, kw_only=True, eq=False)
class AnomalyChecks:
    """Rows of `host_calls` in the window, in start order."""

    nan_checks: Ints
    """Calls of `aten::isnan`."""
    calls: Ints
    """The NaN checks, and the calls that read their results."""


@computed
def anomaly_checks(trace: Trace) -> AnomalyChecks:
    """Return the NaN checks directly in the engine's range of a backward function."""
    calls, span = trace.host_calls, window(trace)
    parent = np.append(calls["parent"].to_numpy(), -1)
    is_engine = np.append(name_mask(calls["name"], lambda name: name.startswith(ENGINE)), False)
    begins = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], CHECK_NAMES.__contains__))
    rows = rows[(begins[rows] >= span.start_ns) & (begins[rows] < span.end_ns)]
    rows = rows[is_engine[parent[rows]]]
    is_nan_check = (calls["name"].iloc[rows] == NAN_CHECK).to_numpy()
    nan_checks = rows[is_nan_check]
    is_checked = np.isin(parent[rows], parent[nan_checks])
    return AnomalyChecks(nan_checks=nan_checks, calls=rows[is_checked])


MOST_STACK_NS = 200_000
"""Greatest time of one stack: 41 µs, and 4 µs for each Python function on it, were measured on an
EPYC."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeStacks:
    """Times in which nodes of autograd store the Python stack, if anomaly detection is on."""

    calls: Ints
    """Forward operators (rows of `host_calls`) in the window that made a node."""
    least: Intervals
    """The lower quartile of their self times, from the start of each; less where one took less."""
    most: Intervals
    """The same by the upper quartile: some operators compute in their self time."""


@computed
def node_stacks(trace: Trace) -> NodeStacks:
    """Return the forward operators that made a node, and the time of its stack."""
    calls, span = trace.host_calls, window(trace)
    forward = forward_backward(trace).forward
    rows = np.unique(forward[forward >= 0])
    start_ns, self_ns = calls["start_ns"].to_numpy()[rows], calls["self_ns"].to_numpy()[rows]
    is_inside = (start_ns >= span.start_ns) & (start_ns < span.end_ns)
    rows, start_ns, self_ns = rows[is_inside], start_ns[is_inside], self_ns[is_inside]
    least, most = np.quantile(self_ns, (0.25, 0.75)) if len(rows) else (0.0, 0.0)

    def of(stack_ns: float) -> Intervals:
        length_ns = np.minimum(self_ns, round(min(stack_ns, MOST_STACK_NS)))
        return intervals.union(start_ns, start_ns + length_ns)

    return NodeStacks(calls=rows, least=of(least), most=of(most))
