"""Collectives over all their ranks: transfer, waiting, and the last rank to enter.

Transfer is the shortest duration over the ranks, wait a rank's duration less that, as defined by
torch-tb-profiler (`loader.py`) and TraceLens (`NcclAnalyser`); neither needs a common clock. The
last rank has the shortest duration. Starts and ends are compared on aligned clocks.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_matching import Matches, combined
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import (
    RankRun,
    as_ranges,
    computed_per_run,
    several_ranks,
)
from stepscope.analyses.core.collective_bandwidth import bus_factor, bytes_per_second
from stepscope.model.arrays import Floats, Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

SCHEMA: Schema = (
    Column("span", "object", "text", "The traces' span; different spans never match."),
    Column("kind", "object", "text", "`all_reduce`, `all_gather`, …; `send` for both its ends."),
    Column("group", "object", "text", "The process group's name; None: not recorded, so that all"
           " ranks count as one group."),
    Column("group_ranks", "object", "text", "Its ranks (JSON); None: unknown."),
    Column("sequence", "int64", "id", "torch's `Seq`; -1: not recorded."),
    Column("matched_by", "object", "text", "`sequence` (torch's numbers), `order` (in group, kind"
           " and size), or None where no other rank has it."),
    Column("step", "int64", "id", "Number of the `ProfilerStep` that requested it; -1: none."),
    Column("rank_count", "int64", "count", "Ranks with this collective."),
    Column("expected_count", "float64", "count", "Ranks of its group; NaN: not recorded."),
    Column("missing_ranks", "object", "text", "Ranks of its group without it, as `3, 8-15`."),
    Column("message_bytes", "float64", "bytes", "The largest over the ranks; NaN: unknown."),
    Column("transfer_ns", "float64", "ns", "Shortest duration over the ranks; NaN: one rank."),
    Column("mean_ns", "float64", "ns", "Mean duration over the ranks."),
    Column("longest_ns", "int64", "ns", "Longest duration over the ranks."),
    Column("wait_ns", "float64", "ns", "Sum over the ranks of their duration less the transfer."),
    Column("last_rank", "float64", "id", "The rank of the shortest duration, for which the others"
           " wait; NaN for kinds that ranks may leave before all enter, and for unknown ranks."),
    Column("margin_ns", "float64", "ns", "Difference to the next shortest duration."),
    Column("start_skew_ns", "float64", "ns", "First to last start on one clock; NaN: not aligned."),
    Column("end_skew_ns", "float64", "ns", "First to last end on one clock."),
    Column("clock_error_ns", "float64", "ns", "Largest error of the ranks' clocks; the skews' error"
           " is at most twice that."),
    Column("algorithm_bytes_per_second", "float64", "bytes/s", "Message over transfer (algbw)."),
    Column("bus_bytes_per_second", "float64", "bytes/s", "That times nccl-tests' factor."),
)  # fmt: skip


@run_table(
    "matched-collectives",
    SCHEMA,
    rank_summary,
    "One row per collective of the run over all its ranks: transfer and waiting, the last rank to"
    " enter, the skew of starts and ends, and missing ranks.",
)
def matched_collectives(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per collective of a run, in `SCHEMA` columns, by first start.

    Raises:
        MissingDataError: the traces are of one rank.
    """
    return matched_of(several_ranks(parts)).copy()


@computed_per_run
def matched_of(run: RankRun) -> pd.DataFrame:
    """Return the same table for a run of one or more ranks."""
    matches = run.matches
    columns = _identity(run) | _durations(matches) | _last(run) | _skew(run)
    kind, size = columns["kind"], columns["expected_count"]
    rate = bytes_per_second(columns["message_bytes"], columns["transfer_ns"])
    columns["algorithm_bytes_per_second"] = rate
    columns["bus_bytes_per_second"] = rate * bus_factor(kind, size)
    return to_frame(SCHEMA, columns)


def _identity(run: RankRun) -> dict[str, Any]:
    matches, first = run.matches, run.matches.first
    keys = matches.keys
    key = matches.key[first]
    sizes = np.array([_size(of.ranks) for of in keys])
    is_matched = matches.size > 1
    by = np.where(matches.by_sequence[first], "sequence", "order").astype(object)
    return {
        "span": run.identity["span"][matches.trace_index[first]],
        "kind": _texts([of.kind for of in keys])[key],
        "group": _texts([of.group or None for of in keys])[key],
        "group_ranks": _texts([of.ranks or None for of in keys])[key],
        "sequence": matches.sequence[first],
        "matched_by": np.where(is_matched, by, np.array(None, dtype=object)),
        "step": matches.step[first],
        "rank_count": matches.size,
        "expected_count": np.append(sizes, np.nan)[key],
        "missing_ranks": _missing(run),
        "message_bytes": _reduced(np.fmax, matches.message_bytes, matches),
    }


def _texts(values: list[str | None]) -> Objects:
    return np.array([*values, None], dtype=object)


def _size(ranks: str) -> float:
    return float(len(json.loads(ranks))) if ranks else np.nan


def _missing(run: RankRun) -> Objects:
    """Return the missing ranks of each match, computed once per set of present ranks."""
    matches = run.matches
    marks = np.random.default_rng(0).integers(2**62, size=len(run.parts))
    key = matches.key[matches.first]
    together = _reduced(np.bitwise_xor, marks[matches.trace_index], matches)
    code = combined(key, together)
    count = int(code.max()) + 1 if len(code) else 0
    texts = np.full(count, None, dtype=object)
    example = np.zeros(count, dtype=np.int64)
    example[code] = np.arange(len(code))
    bounds = np.append(matches.first, len(matches.match))
    for which, match in enumerate(example.tolist()):
        members = matches.keys[key[match]].ranks
        if members:
            trace_indices = matches.trace_index[bounds[match] : bounds[match + 1]]
            present = {run.ranks[at].rank for at in trace_indices.tolist()}
            texts[which] = as_ranges(set(json.loads(members)) - present)
    return texts[code]


def _reduced(how: np.ufunc, values: NDArray[Any], matches: Matches) -> NDArray[Any]:
    return np.asarray(how.reduceat(values, matches.first)) if len(values) else values


def _durations(matches: Matches) -> dict[str, Any]:
    is_matched = matches.size > 1
    total = _reduced(np.add, matches.duration_ns, matches)
    return {
        "transfer_ns": np.where(is_matched, matches.transfer_ns, np.nan),
        "mean_ns": total / np.maximum(matches.size, 1),
        "longest_ns": _reduced(np.maximum, matches.duration_ns, matches),
        "wait_ns": np.where(is_matched, _reduced(np.add, matches.wait_ns, matches), np.nan),
    }


def _last(run: RankRun) -> dict[str, Any]:
    matches = run.matches
    last, margin_ns = last_arrivals(matches)
    ranks = np.append(run.identity["rank"], np.nan)[np.append(matches.trace_index, -1)[last]]
    return {
        "last_rank": np.where(last >= 0, ranks, np.nan),
        "margin_ns": np.where(last >= 0, margin_ns, np.nan),
    }


def last_arrivals(matches: Matches) -> tuple[Ints, Ints]:
    """Return each match's last member to enter (-1: none, or a tie), and its margin."""
    order = np.lexsort((matches.duration_ns, matches.match))
    first = matches.first
    second = np.minimum(first + 1, np.maximum(len(order) - 1, 0))
    shortest = matches.duration_ns[order[first]]
    margin = np.where(matches.size > 1, matches.duration_ns[order[second]] - shortest, 0)
    is_full = np.asarray(matches.is_full)[first]
    return np.where(is_full & (margin > 0), order[first], -1), margin


def _skew(run: RankRun) -> dict[str, Any]:
    matches, clocks = run.matches, run.alignment
    added = clocks.added_ns(matches.trace_index, matches.start_ns)
    reference = clocks.reference[matches.trace_index]
    is_one = _reduced(np.minimum, reference, matches) == _reduced(np.maximum, reference, matches)
    is_aligned = is_one & (matches.size > 1)
    error = clocks.error_ns[matches.trace_index]
    return {
        "start_skew_ns": np.where(is_aligned, _spread(matches.start_ns, added, matches), np.nan),
        "end_skew_ns": np.where(is_aligned, _spread(matches.end_ns, added, matches), np.nan),
        "clock_error_ns": np.where(is_aligned, _reduced(np.maximum, error, matches), np.nan),
    }


def _spread(times: Ints, added: Floats, matches: Matches) -> Floats:
    """Return the range of each match's times, relative to its first (floats lose precision)."""
    base = times[matches.first][matches.match] if len(times) else times
    aligned = (times - base) + added
    latest, first = (_reduced(how, aligned, matches) for how in (np.maximum, np.minimum))
    return np.asarray(latest - first, dtype=np.float64)
