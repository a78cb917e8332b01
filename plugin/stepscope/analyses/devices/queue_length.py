"""Launch order and queue length of each stream: launched work that waits.

As HTA has it (`trace_counters.py`): one more where a call that launches work begins, one less where
the work begins on its stream. A device that is never short of work has a queue that is never empty;
where it reaches some 1024 pieces, launching blocks until the device has caught up (NVIDIA's limit,
which is not documented; HTA's constant).

HTA's statistics are over the points at which the length changes, whatever time lies between them;
these tables have the same columns, and `length_time_mean`, in which each length counts for as
long as it lasted.

A stream runs its work in launch order. A CUDA event therefore stands for all work that was launched
into its stream before it was recorded: a wait for the event waits for the last of that work. HTA
(`critical_path_analysis.py`) reads it the same way.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.group_statistics import Levels, levels
from stepscope.analyses.core.links import links
from stepscope.model.arrays import NONE, Ints
from stepscope.model.call_tree import first_not_before, last_not_after
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchOrder:
    """Device work with recorded launches, by stream, then in launch order."""

    numbers: dict[tuple[int, int], int]
    """Each device's and stream's number."""
    stream: Ints
    """The number of each piece's stream."""
    launch_ns: Ints
    """When the call that launched it began."""
    rows: Ints
    """Rows of `device_events`."""

    def streams(self, device: Ints, stream: Ints) -> Ints:
        """Return the numbers of these streams, -1 for those without work."""
        pairs = zip(device.tolist(), stream.tolist(), strict=True)
        codes = [self.numbers.get(pair, NONE) for pair in pairs]
        return np.array(codes, dtype=np.int64)

    def last_before(self, stream: Ints, at_ns: Ints) -> Ints:
        """Return the last work put into these streams by then (`device_events` rows), or -1."""
        index = last_not_after((self.stream, self.launch_ns), (stream, at_ns))
        return np.append(self.rows, NONE)[index]

    def first_after(self, stream: Ints, at_ns: Ints) -> Ints:
        """Return the first work put into these streams from then on, or -1."""
        index = first_not_before((self.stream, self.launch_ns), (stream, at_ns))
        return np.append(self.rows, NONE)[index]


def stream_numbers(events: pd.DataFrame) -> tuple[Ints, dict[tuple[int, int], int]]:
    """Return each device event's stream as a number, from 0, and each stream's number."""
    devices, device_values = pd.factorize(events["device"].to_numpy(), sort=True)
    streams, stream_values = pd.factorize(events["stream"].to_numpy(), sort=True)
    number, pairs = pd.factorize(devices * max(1, len(stream_values)) + streams, sort=True)
    names: dict[tuple[int, int], int] = {}
    for index, pair in enumerate(pairs.tolist()):
        device, stream = divmod(pair, len(stream_values))
        names[int(device_values[device]), int(stream_values[stream])] = index
    return number.astype(np.int64), names


@computed
def launch_order(trace: Trace) -> LaunchOrder:
    """Return the order in which each stream was given its work."""
    number, names = stream_numbers(trace.device_events)
    call = links(trace).call_of_device_event
    rows = np.flatnonzero(call >= 0)
    launch_ns = trace.runtime_calls["start_ns"].to_numpy()[call[rows]]
    order = np.argsort(launch_ns, kind="stable")
    order = order[np.argsort(number[rows][order], kind="stable")]
    rows = rows[order]
    return LaunchOrder(numbers=names, stream=number[rows], launch_ns=launch_ns[order], rows=rows)


FULL = 1024
"""HTA's `CUDA_MAX_LAUNCH_QUEUE_PER_STREAM`."""
PLACE: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("stream", "int64", "id", "The stream's number on it."),
)
SERIES: Schema = (
    *PLACE,
    Column("time_ns", "int64", "ns", "When the length changed; it stays until the next row."),
    Column("length", "int64", "count", "Pieces of work launched and not begun, from then on."),
)
SUMMARY: Schema = (
    *PLACE,
    Column("change_count", "int64", "count", "How often the length changed."),
    Column("unlinked_count", "int64", "count", "Work whose launch was not recorded: not counted."),
    Column("length_mean", "float64", "count", "Mean length over the changes (HTA), not over time."),
    Column("length_standard_deviation", "float64", "count", "Over the changes, of a sample (HTA)."),
    Column("length_min", "float64", "count", "Least length; below 0 where work began before its"
           " launch; NaN, as all lengths, where no launch was recorded."),
    Column("length_p25", "float64", "count", "25th percentile over the changes (HTA)."),
    Column("length_p50", "float64", "count", "Median over the changes (HTA)."),
    Column("length_p75", "float64", "count", "75th percentile over the changes (HTA)."),
    Column("length_max", "float64", "count", "Greatest length."),
    Column("length_time_mean", "float64", "count", "Mean length over time; NaN where no time"
           " passed."),
    Column("empty_share", "float64", "share", "Of the time between first and last change."),
    Column("full_ns", "int64", "ns", "For how long 1024 pieces or more were queued (HTA)."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Queues:
    """Every change of every queue, by stream, then time."""

    streams: tuple[tuple[int, int], ...]
    """Device and stream by number."""
    unlinked: Ints
    """How much of each stream's work has no recorded launch, and is left out."""
    changes: Levels
    """Length by stream."""


@computed
def queues(trace: Trace) -> Queues:
    """Follow the queue of every stream; work whose launch was not recorded is left out."""
    number, names = stream_numbers(trace.device_events)
    call = links(trace).call_of_device_event
    row = np.flatnonzero(call >= 0)
    launched = trace.runtime_calls["start_ns"].to_numpy()[call[row]]
    began = trace.device_events["start_ns"].to_numpy()[row]
    time = np.concatenate((launched, began))
    stream = np.concatenate((number[row], number[row]))
    change = np.repeat([1, -1], len(row))  # a launch comes before work that begins with it
    return Queues(
        streams=tuple(names),
        unlinked=np.bincount(number[call < 0], minlength=len(names)),
        changes=levels(stream, time, change),
    )


@public_table(
    "queue-length-series",
    SERIES,
    "One row per change of a stream's queue: work was launched into it, or began.",
    title="Queue length over time",
)
@computed
def queue_series(trace: Trace) -> pd.DataFrame:
    """Return one row a change."""
    changes = queues(trace).changes
    stream = _identity(queues(trace), changes.group)
    return pd.DataFrame({**stream, "time_ns": changes.time_ns, "length": changes.level})


@public_table(
    "queue-length",
    SUMMARY,
    "One row per stream with work: how many launched pieces of it waited in its queue.",
)
@computed
def queue_lengths(trace: Trace) -> pd.DataFrame:
    """Return one row a stream with work, whether its launches were recorded or not."""
    stream_queues = queues(trace)
    changes, count = stream_queues.changes, len(stream_queues.streams)
    length, group, lasts = changes.level, changes.group, changes.lasts_ns
    span = statistics.sums(lasts, group, count)
    change_count = np.bincount(group, minlength=count)
    has_changes = change_count > 0
    least, most = (
        np.where(has_changes, extreme, np.nan)
        for extreme in statistics.extremes(length, group, count)
    )
    columns = {
        **_identity(stream_queues, np.arange(count)),
        "change_count": change_count,
        "unlinked_count": stream_queues.unlinked,
        "length_mean": statistics.mean(length, group, count),
        "length_standard_deviation": statistics.standard_deviation(length, group, count),
        "length_min": least,
        **{
            f"length_p{percent}": statistics.quantile(length, group, count, percent / 100)
            for percent in (25, 50, 75)
        },
        "length_max": most,
        "length_time_mean": statistics.weighted_mean(length, lasts, group, count),
        "empty_share": statistics.ratio(
            statistics.sums_where(lasts, group, count, length <= 0), span
        ),
        "full_ns": statistics.sums_where(lasts, group, count, length >= FULL),
    }
    return pd.DataFrame(columns)[[column.name for column in SUMMARY]]


def _identity(stream_queues: Queues, stream: Ints) -> dict[str, Ints]:
    pairs = np.array(stream_queues.streams, dtype=np.int64).reshape(-1, 2)
    return {"device": pairs[stream, 0], "stream": pairs[stream, 1]}
