"""Tables of the ranks: the breakdown of each one's mean step, and the offsets of their clocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import (
    IDENTITY,
    RankRun,
    computed_per_run,
    rank_run,
    several_ranks,
)
from stepscope.analyses.core.group_statistics import ratio
from stepscope.model import intervals
from stepscope.model.arrays import Floats
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

SCHEMA: Schema = (
    IDENTITY[0],
    Column("rank_source", "object", "text", "`header` (distributedInfo.rank), `file name`,"
           " `content` (its process groups) or `device` (its number)."),
    Column("rank_confidence", "object", "text", "`high`, `medium` or `low`."),
    *IDENTITY[1:],
    Column("device_name", "object", "text", "The device's name; None: no device, or unknown."),
    Column("step_count", "int64", "count", "Complete steps; 0: the whole trace counts as one."),
    Column("step_ns", "float64", "ns", "Mean step, including the device's last work."),
    Column("computing_ns", "float64", "ns", "Time per step in which its device computes: kernels"
           " other than collectives'; without a device, operators of the host."),
    Column("communication_ns", "float64", "ns", "Time per step in collectives; concurrent ones"
           " count once."),
    Column("exposed_ns", "float64", "ns", "The part of that without computing."),
    Column("overlap_share", "float64", "share", "The part with computing (HTA's overlap); NaN: no"
           " communication."),
    Column("idle_ns", "float64", "ns", "Time per step in which its device is idle; NaN: no"
           " device."),
    Column("transfer_ns", "float64", "ns", "The part of that without waiting; where collectives do"
           " not match, the sum of the others' shortest durations over the ranks; NaN: no match."),
    Column("wait_ns", "float64", "ns", "Time per step in matched collectives beyond their shortest"
           " duration over the ranks; at most its time in collectives."),
    Column("collective_count", "int64", "count", "Collectives of more than one rank."),
    Column("matched_count", "int64", "count", "Collectives that match another rank's."),
)  # fmt: skip


TOTALS = ("step_count", "step_ns", "computing_ns", "communication_ns", "exposed_ns", "idle_ns")


@run_table(
    "ranks",
    SCHEMA,
    rank_summary,
    "One row per trace: its rank with the source, and the breakdown of its mean step, with"
    " waiting for other ranks separate from transfer.",
)
def rank_table(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per trace, in `SCHEMA` columns, by rank."""
    return rank_table_of(rank_run(parts)).copy()


@computed_per_run
def rank_table_of(run: RankRun) -> pd.DataFrame:
    """Return the same table for a run."""
    totals = [part.totals for part in run.parts]
    figures = {name: np.array([getattr(of, name) for of in totals]) for name in TOTALS}
    communication = figures["communication_ns"]
    columns: dict[str, Any] = {
        **run.identity,
        "rank_source": [of.source for of in run.ranks],
        "rank_confidence": [of.confidence for of in run.ranks],
        "device_name": [part.device_name for part in run.parts],
        **figures,
        "overlap_share": ratio(communication - figures["exposed_ns"], communication),
        **_matched(run, communication),
    }
    return to_frame(SCHEMA, columns)


def _matched(run: RankRun, communication_ns: Floats) -> dict[str, Any]:
    """Return transfer and waiting: all communication, where all of it is matched."""
    matches, count = run.matches, len(run.parts)
    is_matched = matches.is_matched
    trace_index = matches.trace_index[is_matched]
    steps = np.array([max(1, part.totals.step_count) for part in run.parts])
    shortest_ns = matches.transfer_ns[matches.match[is_matched]]
    least_ns = np.bincount(trace_index, shortest_ns, minlength=count) / steps
    all_count = np.bincount(matches.trace_index, minlength=count)
    matched = np.bincount(trace_index, minlength=count)
    wait = np.array([_wait_ns(*of) for of in zip(run.parts, run.waits, strict=True)]) / steps
    wait_ns = np.where(matched > 0, np.minimum(wait, communication_ns), np.nan)
    rest_ns = communication_ns - wait_ns
    return {
        "transfer_ns": np.where(matched == all_count, rest_ns, np.minimum(least_ns, rest_ns)),
        "wait_ns": wait_ns,
        "collective_count": all_count,
        "matched_count": matched,
    }


def _wait_ns(part: RankSummary, waits: intervals.Intervals) -> int:
    """Return a trace's waiting in its steps, in all."""
    start_ns, end_ns = part.steps.start_ns, part.steps.start_ns + part.steps.duration_ns
    return int(intervals.covered_ns(waits, start_ns, end_ns).sum())


CLOCK_SCHEMA: Schema = (
    *IDENTITY,
    Column("reference_rank", "float64", "id", "The rank whose clock it is compared with."),
    Column("reference_worker", "object", "text", "The reference's worker; None: not aligned."),
    Column("offset_ns", "float64", "ns", "Added to its times gives the reference's; NaN: it shares"
           " no collectives with another rank, or they contradict each other."),
    Column("error_ns", "float64", "ns", "Bound of the offset's error, from collectives that no rank"
           " can leave before all have entered. A machine has one clock."),
    Column("likely_error_ns", "float64", "ns", "Median transfer of the links' collectives."),
    Column("drift_ppm", "float64", "ppm", "Rate by which its clock runs slower than the"
           " reference's; 0 unless no constant offset is possible."),
    Column("link", "object", "text", "`reference`, `same machine`, `collectives`; None: none."),
    Column("collective_count", "int64", "count", "Collectives behind the last link."),
)  # fmt: skip


@run_table(
    "clock-alignment",
    CLOCK_SCHEMA,
    rank_summary,
    "One row per trace: the offset to add to its times to compare them with another rank's, and"
    " the offset's error.",
)
def clock_table(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per trace, in `CLOCK_SCHEMA` columns, by rank.

    Raises:
        MissingDataError: the traces are of one rank.
    """
    run = several_ranks(parts)
    clocks = run.alignment
    reference = run.identity_of(clocks.reference)
    columns: dict[str, Any] = {
        **run.identity,
        "reference_rank": reference["rank"],
        "reference_worker": reference["worker"],
        "offset_ns": clocks.offset_ns,
        "error_ns": clocks.error_ns,
        "likely_error_ns": clocks.likely_error_ns,
        "drift_ppm": np.where(clocks.reference >= 0, clocks.drift * 1e6, np.nan),
        "link": clocks.link,
        "collective_count": clocks.link_count,
    }
    return to_frame(CLOCK_SCHEMA, columns)
