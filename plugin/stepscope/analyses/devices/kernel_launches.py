"""Launches of device work, by HTA's definitions.

(`cuda_kernel_analysis.py`, `get_cuda_kernel_launch_stats`.) A launch is a call into the runtime or
driver together with the work that it launched. Its *launch delay* is the time from the call's end
to the work's beginning, at least 0. Work is *short* where it takes less time than its call, and the
call is none of those that took long (*slow calls*, HTA's runtime outliers). A launch is *late*
where the delay is long (HTA's launch-delay outliers), which in a full queue is as it should be.

HTA knows five calls of CUDA and one of MTIA; here it is every call that a device event is linked to
by its correlation. One call launches all work of a graph replay: that work has no launch delay, and
is counted separately.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.dialects import (
    GRAPH_CAPTURE_END_NAME,
    GRAPH_CAPTURE_NAME,
    GRAPH_LAUNCH_NAME,
    LAUNCH_NAME,
)
from stepscope.model.arrays import Floats, Ints, Mask, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

SLOW_CALL_NS = 50_000
"""HTA's `runtime_cutoff`."""
LATE_NS = 100_000
"""HTA's `launch_delay_cutoff`."""
COUNTS: Schema = (
    Column("launch_count", "int64", "count", "Launches whose call was recorded, graphs apart."),
    Column("graph_count", "int64", "count", "Work that a graph replayed."),
    Column("unlinked_count", "int64", "count", "Work whose call was not recorded."),
    Column("host_total_ns", "int64", "ns", "Sum of the launching calls (HTA's cpu_duration)."),
    Column("host_mean_ns", "float64", "ns", "Mean launching call; NaN where there is none."),
    Column("device_total_ns", "int64", "ns", "Sum of what they launched (HTA's gpu_duration)."),
    Column("device_mean_ns", "float64", "ns", "Mean of what they launched."),
    Column("delay_mean_ns", "float64", "ns", "Mean launch delay (HTA)."),
    Column("delay_median_ns", "float64", "ns", "Median launch delay."),
    Column("delay_p95_ns", "float64", "ns", "95th percentile of launch delays."),
    Column("delay_max_ns", "float64", "ns", "Longest launch delay; NaN: no launch."),
    Column("short_count", "int64", "count", "Work shorter than its call (HTA's short kernels)."),
    Column("slow_call_count", "int64", "count", "Calls over 50 µs (HTA's runtime outliers)."),
    Column("late_count", "int64", "count", "Delays over 100 µs (HTA's launch-delay outliers)."),
)
BY_NAME: Schema = (
    Column("name", "object", "text", "What was launched: the name in short."),
    Column("full_name", "object", "text", "The name as the profiler wrote it."),
    *COUNTS,
)
BY_CALL: Schema = (
    Column("call", "object", "text", "The launching call; `all` is the last row."),
    *COUNTS,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Launches:
    """One entry a launch: device work with a call of its own."""

    row: Ints
    """The work, as a row of `device_events`."""
    call: Ints
    """Its row in `runtime_calls`."""
    host_ns: Ints
    device_ns: Ints
    delay_ns: Ints
    """From the call's end to the work's beginning, at least 0."""
    replayed: Ints
    """The work that graphs replayed."""
    unlinked: Ints
    """The work whose call was not recorded."""

    @property
    def is_short(self) -> Mask:
        """Whether the work took less time than its call, which was not slow."""
        return (self.device_ns < self.host_ns) & ~self.is_slow

    @property
    def is_slow(self) -> Mask:
        """Whether the call took long."""
        return self.host_ns > SLOW_CALL_NS

    @property
    def is_late(self) -> Mask:
        """Whether the work began long after its call."""
        return self.delay_ns > LATE_NS


@computed
def launches(trace: Trace) -> Launches:
    """Return all launches of the trace."""
    events, calls = trace.device_events, trace.runtime_calls
    call = links(trace).call_of_device_event
    is_graph = np.append(name_mask(calls["name"], GRAPH_LAUNCH_NAME.search), False)[call]
    row = np.flatnonzero((call >= 0) & ~is_graph)
    began = events["start_ns"].to_numpy()[row]
    return Launches(
        row=row,
        call=call[row],
        host_ns=calls["duration_ns"].to_numpy()[call[row]],
        device_ns=events["duration_ns"].to_numpy()[row],
        delay_ns=np.maximum(began - calls["end_ns"].to_numpy()[call[row]], 0),
        replayed=np.flatnonzero(is_graph),
        unlinked=np.flatnonzero(call < 0),
    )


@public_table(
    "kernel-launches",
    BY_NAME,
    "One row per name of device work: what launching it cost the host, how long it then took to"
    " begin, and how much of it was shorter than its launch.",
)
@computed
def launches_by_name(trace: Trace) -> pd.DataFrame:
    """Return one row per name of device work, the largest host cost first."""
    name = trace.device_events["name"].cat
    full = name.categories.to_numpy().astype(object)
    device_launches = launches(trace)
    codes = name.codes.to_numpy().astype(np.int64)
    group = np.where(codes < 0, len(full), codes)  # what has no name is left out below
    counts = _counts(device_launches, group, len(full) + 1).iloc[:-1]
    names = np.array([short(str(text)) for text in full], dtype=object)
    table = pd.concat([_texts(name=names, full_name=full), counts], axis=1)
    order = {"host_total_ns": False, "device_total_ns": False, "full_name": True}
    table = table.sort_values(list(order), ascending=list(order.values()), kind="stable")
    return table.reset_index(drop=True)


@public_table(
    "launch-calls",
    BY_CALL,
    "One row per call of the runtime or driver that launches work, and a last one of all: what"
    " the calls cost the host, and how long the work took to begin.",
    title="Launching calls",
)
@computed
def launches_by_call(trace: Trace) -> pd.DataFrame:
    """Return one row a launching call, and one of all; work without a call is in that alone."""
    name = trace.runtime_calls["name"].cat
    codes, device_launches = name.codes.to_numpy(), launches(trace)
    call = links(trace).call_of_device_event
    group = np.append(codes.astype(np.int64), -1)[call]
    named_by = name.categories.to_numpy().astype(object)
    group = np.where(group < 0, len(named_by), group)
    counts = _counts(device_launches, group, len(named_by) + 1).iloc[:-1]
    table = pd.concat([_texts(call=named_by), counts], axis=1)
    table = table[table["launch_count"] + table["graph_count"] > 0]
    table = table.sort_values(["host_total_ns", "call"], ascending=[False, True], kind="stable")
    total = _counts(device_launches, np.zeros(len(group), dtype=np.int64), 1)
    total.insert(0, "call", np.array(["all"], dtype=object))
    together = pd.concat([table, total.astype(table.dtypes.to_dict())], ignore_index=True)
    return together if len(group) else together.iloc[:0]


def _texts(**columns: Objects) -> pd.DataFrame:
    return pd.DataFrame({key: pd.Series(of, dtype=object) for key, of in columns.items()})


def _counts(of: Launches, group: Ints, count: int) -> pd.DataFrame:
    """Return the columns of `COUNTS` for each group of device events."""
    groups = group[of.row]

    def how_many(rows: Ints) -> Ints:
        return np.bincount(group[rows], minlength=count)

    def quantile(share: float) -> Floats:
        return group_statistics.quantile(of.delay_ns, groups, count, share)

    columns = {
        "launch_count": how_many(of.row),
        "graph_count": how_many(of.replayed),
        "unlinked_count": how_many(of.unlinked),
        "host_total_ns": group_statistics.sums(of.host_ns, groups, count),
        "host_mean_ns": group_statistics.mean(of.host_ns, groups, count),
        "device_total_ns": group_statistics.sums(of.device_ns, groups, count),
        "device_mean_ns": group_statistics.mean(of.device_ns, groups, count),
        "delay_mean_ns": group_statistics.mean(of.delay_ns, groups, count),
        "delay_median_ns": quantile(0.5),
        "delay_p95_ns": quantile(0.95),
        "delay_max_ns": quantile(1),
        "short_count": how_many(of.row[of.is_short]),
        "slow_call_count": how_many(of.row[of.is_slow]),
        "late_count": how_many(of.row[of.is_late]),
    }
    return pd.DataFrame(columns)


def single_launches(trace: Trace) -> Ints:
    """Return the rows of `runtime_calls` that launch one kernel each, outside of graph captures.

    Kernels of a captured graph run when the graph is replayed.
    """
    calls = trace.runtime_calls
    names = calls["name"]
    is_launch = name_mask(names, _launches_a_kernel) & (calls["correlation"].to_numpy() >= 0)
    begins = calls["start_ns"].to_numpy()
    captures = np.sort(begins[name_mask(names, GRAPH_CAPTURE_NAME.search)])
    ends = np.sort(begins[name_mask(names, GRAPH_CAPTURE_END_NAME.search)])
    open_count = np.searchsorted(captures, begins, side="right")
    open_count -= np.searchsorted(ends, begins, side="right")
    return np.flatnonzero(is_launch & (open_count <= 0))


def launch_call_ns(trace: Trace) -> int | None:
    """Return the median duration of calls that launch one kernel each; None: none recorded."""
    durations = trace.runtime_calls["duration_ns"].to_numpy()[single_launches(trace)]
    return int(np.median(durations)) if len(durations) else None


def _launches_a_kernel(name: str) -> bool:
    return bool(LAUNCH_NAME.search(name)) and not GRAPH_LAUNCH_NAME.search(name)
