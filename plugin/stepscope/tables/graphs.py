"""Graphs."""

from stepscope.analyses.compiled.graph_launches import GRAPH_SCHEMA, graph_table
from stepscope.tables import Table

TABLE = Table(
    title="Graphs",
    meaning="One row a recorded graph: its replays, their kernels, and how much of their time the "
    "device worked.",
    schema=GRAPH_SCHEMA,
    build=graph_table,
)
