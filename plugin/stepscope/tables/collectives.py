"""Collectives by kind, group and size."""

from stepscope.analyses.communication.collective_table import SCHEMA, collective_table
from stepscope.tables import Table

TABLE = Table(
    title="Collectives",
    meaning="One row a kind of collective, process group, type and message size: how often, how"
    " long, how fast, and how much of it was not hidden behind computing.",
    schema=SCHEMA,
    build=collective_table,
)
