"""Cost of a run's collectives by kind, group, type and size, and one collective by rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import DTYPE, GROUP
from stepscope.analyses.communication.collective_matching import FULL
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.collective_bandwidth import bus_factor, bytes_per_second
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import to_frame

SCHEMA: Schema = (
    Column("kind", "object", "text", "`all_reduce`, `all_gather`, …."),
    GROUP[0],
    *GROUP[2:],
    DTYPE,
    Column("message_bytes", "float64", "bytes", "The larger of input and output, on the rank with"
           " most; NaN: not recorded."),
    Column("call_count", "int64", "count", "Number of collectives."),
    Column("rank_count", "int64", "count", "Ranks of the run that have them."),
    Column("total_bytes", "float64", "bytes", "Sum of their messages."),
    Column("mean_ns", "float64", "ns", "Mean duration, over collectives and ranks."),
    Column("transfer_ns", "float64", "ns", "Mean over the collectives of the shortest duration over"
           " the ranks; NaN: on one rank only."),
    Column("wait_ns", "float64", "ns", "Mean duration beyond that."),
    Column("total_ns", "float64", "ns", "Sum of durations on a rank: the mean over the ranks."),
    Column("total_transfer_ns", "float64", "ns", "Transfer in that sum; NaN: unknown."),
    Column("total_wait_ns", "float64", "ns", "Waiting for other ranks in that sum."),
    Column("exposed_ns", "float64", "ns", "Exposed time in that sum."),
    Column("algorithm_bytes_per_second", "float64", "bytes/s", "Messages over transfer (algbw)."),
    Column("bus_bytes_per_second", "float64", "bytes/s", "nccl-tests' busbw."),
    Column("start_skew_ns", "float64", "ns", "Mean time from the first to the last rank's start, on"
           " one clock; NaN: clocks are not aligned."),
    Column("worst", "int64", "id", "The match with most waiting."),
)  # fmt: skip


KEY = ("kind", "group", "group_ranks", "group_size", "dtype", "message_bytes")


def member_values(run: RankRun, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return one value per member of a match, from a column of each trace."""
    counts = np.array([0, *(len(column) for column in values)])
    first = np.cumsum(counts)[:-1]
    align_collective = np.concatenate([np.empty(0, dtype=np.int64), *values])
    return np.asarray(align_collective[first[run.matches.trace_index] + run.matches.row])


@computed_per_run
def exposed_ns(run: RankRun) -> Ints:
    """Return the exposed time of each member."""
    hidden = member_values(run, [part.collectives.hidden_ns for part in run.parts])
    return np.asarray(run.matches.duration_ns - hidden)


@computed_per_run
def member_events(run: RankRun) -> Ints:
    """Return each member's event: its index in the file."""
    return member_values(run, [part.collectives.event for part in run.parts])


def collective_kinds(run: RankRun, matched: pd.DataFrame, selected: Mask) -> pd.DataFrame:
    """Return one row per kind, group, type and size of the selected members, costliest first.

    `matched` is the run's `matched_collectives`; columns are those of `SCHEMA`.
    """
    matches = run.matches
    member = np.flatnonzero(selected)
    match = np.unique(matches.match[member])
    keys = _keys(run, matched, match)
    kind_of = np.full(len(matches.first), NONE, dtype=np.int64)
    kind_of[match], first = statistics.group_rows(keys, KEY)
    count = len(first)
    columns: dict[str, Any] = {name: keys[name].to_numpy()[first] for name in KEY}
    columns |= _costs(run, member, kind_of[matches.match[member]], count)
    columns |= _calls(matched.iloc[match], kind_of[match], count, match)
    size = columns["group_size"]
    columns["bus_bytes_per_second"] = columns["algorithm_bytes_per_second"] * bus_factor(
        columns["kind"], size
    )
    return to_frame(SCHEMA, columns, "-total_ns", "kind", "-message_bytes")


def _keys(run: RankRun, matched: pd.DataFrame, match: Ints) -> pd.DataFrame:
    matches = run.matches
    dtypes = np.array([*(key.dtype or None for key in matches.keys), None], dtype=object)
    rows = matched.iloc[match]
    return pd.DataFrame(
        {
            "kind": rows["kind"].to_numpy(),
            "group": rows["group"].to_numpy(),
            "group_ranks": rows["group_ranks"].to_numpy(),
            "group_size": rows["expected_count"].to_numpy(),
            "dtype": dtypes[matches.key[matches.first[match]]],
            "message_bytes": rows["message_bytes"].to_numpy(),
        }
    )


def _costs(run: RankRun, member: Ints, kind: Ints, count: int) -> dict[str, Any]:
    matches = run.matches
    trace_index = matches.trace_index[member]
    pairs = np.unique(kind * max(1, len(run.parts)) + trace_index)
    ranks = np.bincount(pairs // max(1, len(run.parts)), minlength=count)
    duration = matches.duration_ns[member]
    is_matched = matches.is_matched[member]
    wait = np.where(is_matched, matches.wait_ns[member], np.nan)
    total = statistics.sums(duration, kind, count) / np.maximum(ranks, 1)
    exposed = statistics.sums(exposed_ns(run)[member], kind, count) / np.maximum(ranks, 1)
    mean_wait = statistics.nan_mean(wait, kind, count)
    waited = np.bincount(kind, np.nan_to_num(wait), minlength=count) / np.maximum(ranks, 1)
    has = np.bincount(kind[is_matched], minlength=count) > 0
    return {
        "rank_count": ranks,
        "mean_ns": statistics.mean(duration, kind, count),
        "wait_ns": mean_wait,
        "total_ns": total,
        "total_wait_ns": np.where(has, waited, np.nan),
        "total_transfer_ns": np.where(has, total - waited, np.nan),
        "exposed_ns": exposed,
    }


def _calls(rows: pd.DataFrame, kind: Ints, count: int, match: Ints) -> dict[str, Any]:
    size, transfer = rows["message_bytes"].to_numpy(), rows["transfer_ns"].to_numpy()
    calls = np.bincount(kind, minlength=count)
    order = np.lexsort((-np.nan_to_num(rows["wait_ns"].to_numpy()), kind))
    is_valid = ~np.isnan(transfer) & ~np.isnan(size)
    sent = np.bincount(kind[is_valid], size[is_valid], minlength=count).astype(np.float64)
    took = np.bincount(kind[is_valid], transfer[is_valid], minlength=count)
    return {
        "call_count": calls,
        "total_bytes": np.bincount(kind, size, minlength=count),
        "transfer_ns": statistics.nan_mean(transfer, kind, count),
        "algorithm_bytes_per_second": bytes_per_second(sent, took.astype(np.float64)),
        "start_skew_ns": statistics.nan_mean(rows["start_skew_ns"].to_numpy(), kind, count),
        "worst": match[order[np.searchsorted(kind[order], np.arange(count))]],
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedCollective:
    """One collective on one clock, with an entry per rank."""

    trace_index: Ints
    member: Ints
    """Rows of the matches."""
    start_ns: Ints
    """From the first rank's start."""
    aligned_by: str
    """`clocks`, or `ends` where clocks are not aligned: ranks leave together."""
    error_ns: float
    """Bound of the error between two entries; NaN: unknown."""


def align_collective(run: RankRun, match: int) -> AlignedCollective:
    """Return one collective of all its ranks on one clock."""
    matches, clocks = run.matches, run.alignment
    low = int(matches.first[match])
    member = np.arange(low, low + int(matches.size[match]))
    trace_index, start = matches.trace_index[member], matches.start_ns[member]
    reference = clocks.reference[trace_index]
    is_aligned = bool((reference >= 0).all() and (reference == reference[0]).all())
    if is_aligned:
        base = int(start.min())
        aligned = (start - base) + clocks.added_ns(trace_index, start)
        error = 2 * float(clocks.error_ns[trace_index].max())
    else:
        aligned = -matches.duration_ns[member].astype(np.float64)
        is_full = matches.keys[int(matches.key[low])].kind in FULL
        error = float(matches.transfer_ns[match]) if is_full else np.nan
    return AlignedCollective(
        trace_index=trace_index,
        member=member,
        start_ns=np.round(aligned - aligned.min()).astype(np.int64),
        aligned_by="clocks" if is_aligned else "ends",
        error_ns=error,
    )
