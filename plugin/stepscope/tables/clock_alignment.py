"""The clocks of ranks."""

from stepscope.analyses.communication.clock_table import SCHEMA, clock_table
from stepscope.analyses.communication.rank_summary import rank_part
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Clock alignment",
    meaning="One row a recording: what is to be added to its times to compare them with another"
    " rank's, and by how much that may be wrong.",
    schema=SCHEMA,
    part=rank_part,
    build=clock_table,
)
