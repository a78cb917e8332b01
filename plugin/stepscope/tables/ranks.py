"""The ranks of a run."""

from stepscope.analyses.communication.rank_summary import rank_part
from stepscope.analyses.communication.rank_table import SCHEMA, rank_table
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Ranks",
    meaning="One row a recording: whose rank it is and how that is known, and where its mean step"
    " goes, waiting for other ranks told from transfer.",
    schema=SCHEMA,
    part=rank_part,
    build=rank_table,
)
