"""By how much the ranks' clocks differ, and how sure that is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import several_ranks
from stepscope.model.frames import Column, Schema
from stepscope.model.table import RunTable
from stepscope.model.table_columns import to_frame

SCHEMA: Schema = (
    Column("rank", "float64", "id", "The rank; NaN: unknown."),
    Column("worker", "object", "text", "The worker whose recording it is."),
    Column("span", "object", "text", "Which recording of it."),
    Column("host", "object", "text", "The machine's name (torch's `host_name`); None: unknown."),
    Column("reference_rank", "float64", "id", "The rank whose clock it is compared with."),
    Column("reference_worker", "object", "text", "That one's worker; None: not aligned."),
    Column("offset_ns", "float64", "ns", "To be added to its times to have the reference's; NaN:"
           " it shares no collectives with any, or they contradict each other."),
    Column("error_ns", "float64", "ns", "The true offset is no further away: from all collectives"
           " together, none of which a rank can leave before all have come. A machine has one"
           " clock."),
    Column("likely_error_ns", "float64", "ns", "Ranks mostly leave a collective within this of each"
           " other: the median transfer of the links' collectives."),
    Column("drift_ppm", "float64", "ppm", "By how much its clock runs slower than the reference's;"
           " 0 unless no constant offset is possible."),
    Column("link", "object", "text", "`reference`, `same machine`, `collectives`; None: none."),
    Column("collective_count", "int64", "count", "Collectives on which the last link rests."),
)  # fmt: skip


def clock_table(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row a recording, in `SCHEMA` columns, by rank.

    Raises:
        MissingDataError: the recordings are of one rank.
    """
    run = several_ranks(parts)
    clocks = run.alignment
    columns: dict[str, Any] = {
        **run.identity,
        "reference_rank": np.append(run.identity["rank"], np.nan)[clocks.reference],
        "reference_worker": np.append(run.identity["worker"], None)[clocks.reference],
        "offset_ns": clocks.offset_ns,
        "error_ns": clocks.error_ns,
        "likely_error_ns": clocks.likely_error_ns,
        "drift_ppm": np.where(clocks.reference >= 0, clocks.drift * 1e6, np.nan),
        "link": clocks.link,
        "collective_count": clocks.link_count,
    }
    return to_frame(SCHEMA, columns)


TABLES = {
    "clock-alignment": RunTable(
        title="Clock alignment",
        meaning="One row per recording: what is to be added to its times to compare them with "
        "another rank's, and by how much that may be wrong.",
        schema=SCHEMA,
        part=rank_summary,
        build=clock_table,
    ),
}
