"""What recording costs the program that is recorded: the profiler's own work, and its stacks."""

from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.analyses.core.window import window
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.frames.source import Rows
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

MODULE_LOADING = "Lazy Function Loading"
"""CUPTI files the loading of kernels under its overhead, though it is the program's own start."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProfilerCost:
    """Within the window."""

    overhead: Intervals
    """When the profiler worked for itself (`overhead` events: buffers requested and flushed)."""
    overhead_ns: Mapping[str, int]
    """The same by the events' names, the most first; concurrent ones are counted each."""
    python_per_operator: float
    """Python functions recorded for each operator: each costs the host about a microsecond."""


@computed
def profiler_cost(trace: Trace) -> ProfilerCost:
    """Return what recording cost (CUPTI's `CUpti_ActivityOverhead`, as kineto files it)."""
    frame = _overheads(trace, trace.source.rows(Kind.OVERHEAD))
    span = window(trace)
    overhead_ns: dict[str, int] = {}
    for name in frame:
        clipped = intervals.clip(frame[name], span.start_ns, span.device_end_ns)
        overhead_ns[name] = intervals.duration_ns(clipped)
    operators = int(trace.host_calls["is_operator"].sum())
    python_calls = len(trace.source.rows(Kind.PYTHON_CALL))
    overhead = intervals.clip(intervals.merged(*frame.values()), span.start_ns, span.device_end_ns)
    return ProfilerCost(
        overhead=overhead,
        overhead_ns=dict(sorted(overhead_ns.items(), key=lambda item: -item[1])),
        python_per_operator=python_calls / max(1, operators),
    )


def _overheads(trace: Trace, rows: Rows) -> dict[str, Intervals]:
    """Return when each kind of overhead went on, but for the loading of kernels."""
    timing = trace.source.timing(rows)
    start, end, names = timing["start_ns"], timing["end_ns"], timing["name"]
    return {
        str(name): intervals.union(start[names.codes == code], end[names.codes == code])
        for code, name in enumerate(names.categories)
        if str(name) != MODULE_LOADING
    }
