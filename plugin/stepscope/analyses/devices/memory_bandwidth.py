"""Bandwidth of copies and memory sets, over time and by kind.

As HTA's time series (`trace_counters.py`, `get_memory_bw_time_series`): where a copy or memory set
begins the rate of its kind rises by its own, where it ends it falls again; between two changes it
stays. The rate of a copy is that of the tables of copies (`transfer_table.py`). Events without
bytes or duration count as 0 (HTA gives them a whole microsecond).

HTA's summary describes the values above 0 at the changes, whatever time lies between them;
`changes_mean_bytes_per_second` is its mean. Rates are whole bytes a second, so that a sum of them
comes back to 0.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.group_statistics import Levels, levels
from stepscope.analyses.devices.transfer_table import transfer_rates
from stepscope.dialects import Kind
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.copies import moved_bytes
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

MEMORY_SET = "set"
MOST_PER_SECOND = 1e15
"""A petabyte: no memory is as fast; what claims to be was given a wrong size or time."""
PLACE: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("kind", "object", "text", "A copy's direction (`HtoD`, `DtoH`, …), or `set`."),
)
SERIES: Schema = (
    *PLACE,
    Column("time_ns", "int64", "ns", "When the rate changed; it stays until the next row."),
    Column("bytes_per_second", "int64", "bytes/s", "All of that kind together, from then on."),
)
SUMMARY: Schema = (
    *PLACE,
    Column("transfer_count", "int64", "count", "Copies, or memory sets, whose rate is known."),
    Column("unknown_count", "int64", "count", "Those that say no bytes, or took no time."),
    Column("active_ns", "int64", "ns", "Time in which any of them ran."),
    Column("mean_bytes_per_second", "float64", "bytes/s", "Mean rate over that time."),
    Column("max_bytes_per_second", "int64", "bytes/s", "Greatest rate, concurrent ones together."),
    Column("changes_mean_bytes_per_second", "float64", "bytes/s", "Mean of the rates above 0 over"
           " their changes (HTA), not over time."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Rates:
    """Every change of every kind's rate, by device and kind, then time."""

    kinds: tuple[tuple[int, str], ...]
    """Device and kind by number."""
    transfers: Ints
    """How many transfers of each kind have a rate."""
    unknown: Ints
    changes: Levels
    """Bytes per second by kind."""


@computed
def memory_rates(trace: Trace) -> Rates:
    """Follow the rate of every kind of copy and of memory sets."""
    events = trace.device_events
    rows = np.flatnonzero(events["kind"].to_numpy() != int(Kind.KERNEL))
    number, kinds = _kinds(trace, rows)
    start, end = events["start_ns"].to_numpy()[rows], events["end_ns"].to_numpy()[rows]
    rate = transfer_rates(trace, rows, moved_bytes(trace.source, events["event"].to_numpy()[rows]))
    is_valid = (rate < MOST_PER_SECOND) & (end > start)
    valid_rates = np.round(rate[is_valid]).astype(np.int64)
    time = np.concatenate((start[is_valid], end[is_valid]))
    kind = np.concatenate((number[is_valid], number[is_valid]))
    change = np.concatenate((valid_rates, -valid_rates))
    return Rates(
        kinds=kinds,
        transfers=np.bincount(number[is_valid], minlength=len(kinds)),
        unknown=np.bincount(number[~is_valid], minlength=len(kinds)),
        changes=levels(kind, time, change),
    )


def _kinds(trace: Trace, rows: Ints) -> tuple[Ints, tuple[tuple[int, str], ...]]:
    """Return the group of each row by device and kind, and the key of each group."""
    events, direction = trace.device_events, trace.copies["direction"].cat
    words = [*map(str, direction.categories), MEMORY_SET]
    code = np.full(len(rows), len(words) - 1, dtype=np.int64)
    code[events["kind"].to_numpy()[rows] == int(Kind.COPY)] = direction.codes.to_numpy()
    per_event = pd.DataFrame({"device": events["device"].to_numpy()[rows], "kind": code})
    number, first = group_statistics.group_rows(per_event, ("device", "kind"))
    pairs = zip(per_event["device"].to_numpy()[first].tolist(), code[first].tolist(), strict=True)
    return number, tuple((device, words[code]) for device, code in pairs)


@public_table(
    "memory-bandwidth-series",
    SERIES,
    "One row per change of the rate at which a device copies in one direction, or sets memory: a"
    " copy or memory set began or ended.",
    title="Memory bandwidth over time",
)
@computed
def bandwidth_series(trace: Trace) -> pd.DataFrame:
    """Return one row a change; those of one kind at one moment are one row."""
    changes = memory_rates(trace).changes
    is_last = (changes.lasts_ns > 0) | (np.diff(changes.group, append=-1) != 0)
    return to_frame(
        SERIES,
        {
            **_identity(memory_rates(trace), changes.group[is_last]),
            "time_ns": changes.time_ns[is_last],
            "bytes_per_second": changes.level[is_last],
        },
    )


@public_table(
    "memory-bandwidth",
    SUMMARY,
    "One row per device and direction of copies, or memory sets: how fast they were.",
)
@computed
def bandwidth_summary(trace: Trace) -> pd.DataFrame:
    """Return one row a device and kind."""
    rates, changes = memory_rates(trace), memory_rates(trace).changes
    count, moves = len(rates.kinds), changes.level > 0
    rate, group, lasts = changes.level[moves], changes.group[moves], changes.lasts_ns[moves]
    return to_frame(
        SUMMARY,
        {
            **_identity(rates, np.arange(count)),
            "transfer_count": rates.transfers,
            "unknown_count": rates.unknown,
            "active_ns": group_statistics.sums(lasts, group, count),
            "mean_bytes_per_second": group_statistics.weighted_mean(rate, lasts, group, count),
            "max_bytes_per_second": group_statistics.extremes(rate, group, count)[1],
            "changes_mean_bytes_per_second": group_statistics.mean(rate, group, count),
        },
    )


def _identity(rates: Rates, number: Ints) -> dict[str, NDArray[np.generic]]:
    devices = np.array([device for device, _ in rates.kinds], dtype=np.int64)
    kinds = np.array([kind for _, kind in rates.kinds], dtype=object)
    return {"device": devices[number], "kind": kinds[number]}
