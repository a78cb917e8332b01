"""The few ranks of a run to look at."""

from stepscope.analyses.communication.rank_summary import rank_part
from stepscope.analyses.communication.representative_ranks import SCHEMA, representative_ranks
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Representative ranks",
    meaning="One row a chosen rank: which of many to look at. The slowest and the fastest, the"
    " usual one, and those that are odd in another way, each with the reason.",
    schema=SCHEMA,
    part=rank_part,
    build=representative_ranks,
)
