"""Idle time of each stream in HTA's three kinds.

A gap lies between two events of a stream (`breakdown_analysis.py`, `get_idle_time_breakdown`). It
is a *host wait* where the second was launched after the first had ended, else a *kernel wait* where
the gap is short, else *other*.

Unlike these gaps, the ledger of a device (`ledger.py`) covers only times in which all streams are
idle (`device_idle_ns`), and extends to the borders of the window. A host wait corresponds to its
causes data loading, allocator, after a sync, dispatch and host stall; a kernel wait or other to
queued, or to not recorded where the launch is unknown.

HTA's documentation gives the limit of a kernel wait as 30 ns; its code compares microseconds. Its
gaps begin at the end of the previous event, ours at the end of all previous events: where kernels
of a stream overlap, HTA's gaps include busy time.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.device_activity import whole_activity
from stepscope.analyses.core.links import links
from stepscope.analyses.devices.queue_length import stream_numbers
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

KERNEL_WAIT_NS = 30_000
"""HTA's `consecutive_kernel_delay`: starting the next kernel takes less."""
KINDS = ("host_wait", "kernel_wait", "other")
SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("stream", "int64", "id", "The stream's number on it."),
    Column("kind", "object", "text", "`host_wait`, `kernel_wait` or `other`, as in HTA."),
    Column("gap_count", "int64", "count", "Gaps of this kind between events of the stream."),
    Column("idle_ns", "int64", "ns", "Their total duration."),
    Column("stream_idle_share", "float64", "share", "Of all gaps of the stream; NaN: none."),
    Column("mean_ns", "float64", "ns", "The mean gap; NaN: none."),
    Column("max_ns", "int64", "ns", "The longest gap."),
    Column("device_idle_ns", "int64", "ns", "The part in which the whole device is idle."),
)


@public_table(
    "idle-kinds",
    SCHEMA,
    "Three rows per stream: its idle time because the host is late (host wait), because a kernel"
    " takes time to begin (kernel wait), and for other reasons.",
    title="Idle time by kind",
)
@computed
def idle_kinds(trace: Trace) -> pd.DataFrame:
    """Return three rows per stream, one per kind, of the whole trace."""
    stream, names = stream_numbers(trace.device_events)
    row, gap_start, gap_end = _gaps(trace, stream)
    gap_ns, group = gap_end - gap_start, stream[row] * len(KINDS) + _kinds(trace, row, gap_start)
    count = len(names) * len(KINDS)
    idle = group_statistics.sums(gap_ns, group, count)
    of_stream = np.repeat(idle.reshape(-1, len(KINDS)).sum(axis=1), len(KINDS))
    columns = {
        "device": np.repeat(np.array([device for device, _ in names], dtype=np.int64), len(KINDS)),
        "stream": np.repeat(np.array([number for _, number in names], dtype=np.int64), len(KINDS)),
        "kind": np.array(KINDS * len(names), dtype=object),
        "gap_count": np.bincount(group, minlength=count),
        "idle_ns": idle,
        "stream_idle_share": group_statistics.ratio(idle, of_stream),
        "mean_ns": group_statistics.mean(gap_ns, group, count),
        "max_ns": group_statistics.extremes(gap_ns, group, count)[1],
        "device_idle_ns": group_statistics.sums(
            gap_ns - _busy_ns(trace, row, gap_start, gap_end), group, count
        ),
    }
    return to_frame(SCHEMA, columns)


def _gaps(trace: Trace, stream: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the `device_events` row that ended each gap, and the gap's start and end."""
    events = trace.device_events  # in the order they began
    order = np.argsort(stream, kind="stable")
    begin, stream_of = events["start_ns"].to_numpy()[order], stream[order]
    until = _latest_end(events["end_ns"].to_numpy()[order], stream_of)
    follows = np.flatnonzero((stream_of[1:] == stream_of[:-1]) & (begin[1:] > until[:-1]))
    return order[follows + 1], until[follows], begin[follows + 1]


def _latest_end(end_ns: Ints, stream: Ints) -> Ints:
    return np.asarray(pd.Series(end_ns).groupby(stream).cummax().to_numpy())


def _kinds(trace: Trace, row: Ints, gap_start: Ints) -> Ints:
    call = links(trace).call_of_device_event[row]
    launch_ns = trace.runtime_calls["start_ns"].to_numpy()
    is_late = np.append(launch_ns, np.iinfo(np.int64).min)[call] > gap_start
    is_short = trace.device_events["start_ns"].to_numpy()[row] - gap_start < KERNEL_WAIT_NS
    return np.where(is_late, 0, np.where(is_short, 1, 2))


def _busy_ns(trace: Trace, row: Ints, gap_start: Ints, gap_end: Ints) -> Ints:
    device = trace.device_events["device"].to_numpy()[row]
    busy = np.zeros(len(row), dtype=np.int64)
    for activity in whole_activity(trace):
        on_device = device == activity.device
        busy[on_device] = intervals.covered_ns(
            activity.busy, gap_start[on_device], gap_end[on_device]
        )
    return busy
