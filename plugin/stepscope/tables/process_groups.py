"""Process groups."""

from stepscope.analyses.communication.process_groups import SCHEMA, process_groups
from stepscope.tables import Table

TABLE = Table(
    title="Process groups",
    meaning="One row a process group: its ranks, what it seems to be for and why, and what its"
    " collectives cost on this rank.",
    schema=SCHEMA,
    build=process_groups,
)
