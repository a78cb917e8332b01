"""Cost of collectives by kind, group, type and message size."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import DTYPE, GROUP, collective_events
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.collective_bandwidth import bus_factor, bytes_per_second
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

KEY = ("kind", "backend", "group", "group_description", "group_ranks", "group_size", "dtype",
       "message_bytes")  # fmt: skip
SCHEMA: Schema = (
    Column("kind", "object", "text", "`all_reduce`, `all_gather`, `send`, …; `other`: unknown."),
    Column("backend", "object", "text", "The library: `nccl`, `rccl`, `gloo`, `symm_mem`, …."),
    *GROUP,
    DTYPE,
    Column("message_bytes", "float64", "bytes", "The larger of input and output."),
    Column("call_count", "int64", "count", "Number of collectives."),
    Column("timed_count", "int64", "count", "Collectives with known times, of which the columns"
           " below are."),
    Column("total_ns", "int64", "ns", "Sum of their durations; concurrent ones all count."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "float64", "ns", "Shortest duration: closest to pure transfer."),
    Column("p95_ns", "float64", "ns", "95th percentile of durations."),
    Column("max_ns", "float64", "ns", "Longest duration."),
    Column("total_bytes", "float64", "bytes", "Sum of their messages; NaN: not recorded."),
    Column("algorithm_bytes_per_second", "float64", "bytes/s", "Message over time, with waits."),
    Column("bus_bytes_per_second", "float64", "bytes/s", "nccl-tests' busbw; NaN: unknown factor."),
    Column("best_bus_bytes_per_second", "float64", "bytes/s", "Bus bandwidth of the shortest."),
    Column("overlap_ns", "int64", "ns", "The part in which their device also computes."),
    Column("exposed_ns", "int64", "ns", "The part in which their device does not compute."),
    Column("overlap_share", "float64", "share", "Overlap over total; NaN: no time."),
    Column("launch_to_start_ns", "float64", "ns", "Mean time from the host's call to the kernel."),
    Column("window_share", "float64", "share", "Their time in the window over the window; above 1"
           " where several run at once."),
)  # fmt: skip


@public_table(
    "collectives",
    SCHEMA,
    "One row per kind of collective, process group, type and message size: calls, time,"
    " bandwidth, and exposed time.",
)
@computed
def collective_table(trace: Trace) -> pd.DataFrame:
    """Return one row per kind, group, type and size, longest total first."""
    events = collective_events(trace)
    group, first = _groups(events)
    count = len(first)
    columns = {name: events[name].to_numpy()[first] for name in KEY}
    columns["call_count"] = np.bincount(group, minlength=count)
    timed = np.flatnonzero(events["duration_ns"].notna().to_numpy())
    columns |= _times(events.iloc[timed], group[timed], count)
    columns |= _rates(columns)
    columns["launch_to_start_ns"] = statistics.nan_mean(
        events["launch_to_start_ns"].to_numpy(dtype=np.float64), group, count
    )
    columns["window_share"] = _window_share(trace, events.iloc[timed], group[timed], count)
    return to_frame(SCHEMA, columns, "-total_ns", "kind", "-message_bytes")


def _groups(events: pd.DataFrame) -> tuple[Ints, Ints]:
    key = events.groupby(list(KEY), dropna=False, sort=False).ngroup().to_numpy()
    group, distinct = pd.factorize(key)
    first = np.full(len(distinct), len(events), dtype=np.int64)
    np.minimum.at(first, group, np.arange(len(events)))
    return group.astype(np.int64), first


def _times(timed: pd.DataFrame, group: Ints, count: int) -> dict[str, NDArray[Any]]:
    duration = timed["duration_ns"].to_numpy().astype(np.int64)
    total = statistics.sums(duration, group, count)
    hidden = statistics.sums(timed["overlap_ns"].to_numpy().astype(np.int64), group, count)
    return {
        "timed_count": np.bincount(group, minlength=count),
        "total_ns": total,
        "mean_ns": statistics.mean(duration, group, count),
        "min_ns": statistics.quantile(duration, group, count, 0.0),
        "p95_ns": statistics.quantile(duration, group, count, 0.95),
        "max_ns": statistics.quantile(duration, group, count, 1.0),
        "overlap_ns": hidden,
        "exposed_ns": total - hidden,
        "overlap_share": statistics.ratio(hidden, total),
    }


def _rates(columns: dict[str, NDArray[Any]]) -> dict[str, Floats]:
    size = columns["message_bytes"]
    factor = bus_factor(columns["kind"], columns["group_size"])
    rate = bytes_per_second(size * columns["timed_count"], columns["total_ns"].astype(np.float64))
    return {
        "total_bytes": size * columns["call_count"],
        "algorithm_bytes_per_second": rate,
        "bus_bytes_per_second": rate * factor,
        "best_bus_bytes_per_second": bytes_per_second(size, columns["min_ns"]) * factor,
    }


def _window_share(trace: Trace, timed: pd.DataFrame, group: Ints, count: int) -> Floats:
    whole = window(trace)
    times = np.array([[whole.device_start_ns, whole.device_end_ns]], dtype=np.int64)
    start = timed["start_ns"].to_numpy()
    end = start + timed["duration_ns"].to_numpy().astype(np.int64)
    return statistics.sums(intervals.covered_ns(times, start, end), group, count) / max(
        1, whole.duration_ns
    )


LEAST_RANGE = 2.0
"""Least ratio of the largest to the smallest message, for an estimate of the bandwidth."""


def transfer_share(events: pd.DataFrame) -> float:
    """Return the fraction of the time of `collective_events` rows that is transfer, not latency.

    A message takes a latency plus its size over the bandwidth (Hockney 1994, "The communication
    challenge for MPP"), both estimated from the shortest of the largest and of the smallest
    messages of a kind. The largest may all have waited for other ranks: a byte takes no longer than
    in any other message. NaN where message sizes are unknown, or nearly equal in a kind.
    """
    sized = events[events["message_bytes"].notna() & events["duration_ns"].notna()]
    if len(sized) < len(events):
        return float("nan")
    parts = [_transfer_ns(same) for _, same in sized.groupby("kind", sort=False)]
    total_ns = float(sized["duration_ns"].sum())
    if not parts or not total_ns:
        return float("nan")
    return float(np.minimum(1.0, np.sum(parts) / total_ns))  # NaN stays NaN


def _transfer_ns(same: pd.DataFrame) -> float:
    shortest = same.groupby("message_bytes")["duration_ns"].min()
    least, most = float(shortest.index[0]), float(shortest.index[-1])
    if most <= 0 or most < LEAST_RANGE * least:
        return float("nan")
    rise_ns = float(shortest.iloc[-1]) - float(shortest.iloc[0])
    is_sized = shortest.index.to_numpy() > 0
    byte_ns = float((shortest[is_sized] / shortest.index[is_sized]).min())
    byte_ns = min(max(0.0, rise_ns / (most - least)), byte_ns)
    return byte_ns * float(same["message_bytes"].sum())
