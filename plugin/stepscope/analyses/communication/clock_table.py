"""Table of the offsets between the ranks' clocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import IDENTITY, several_ranks
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

SCHEMA: Schema = (
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
    SCHEMA,
    rank_summary,
    "One row per trace: the offset to add to its times to compare them with another rank's, and"
    " the offset's error.",
)
def clock_table(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per trace, in `SCHEMA` columns, by rank.

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
    return to_frame(SCHEMA, columns)
