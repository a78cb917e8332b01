"""Collectives over all ranks."""

from stepscope.analyses.communication.matched_collectives import SCHEMA, matched_collectives
from stepscope.analyses.communication.rank_summary import rank_part
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Matched collectives",
    meaning="One row a collective of the run, put together from its ranks: transfer and waiting,"
    " who came last, how far starts and ends lie apart, and which ranks it lacks.",
    schema=SCHEMA,
    part=rank_part,
    build=matched_collectives,
)
