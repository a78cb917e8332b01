"""Ranks that others wait for."""

from stepscope.analyses.communication.rank_summary import rank_part
from stepscope.analyses.communication.stragglers import SCHEMA, stragglers
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Stragglers",
    meaning="One row a recording: how late it comes to collectives beside the other ranks, since"
    " when, what that costs the others, and what takes longer on it.",
    schema=SCHEMA,
    part=rank_part,
    build=stragglers,
)
