"""Compiled graphs."""

from stepscope.analyses.compiled.compiled_regions import GRAPH_SCHEMA, compiled_graph_table
from stepscope.tables import Table

TABLE = Table(
    title="Compiled graphs",
    meaning="One row a graph that Inductor compiled, and region that called it: calls, host and "
    "device time.",
    schema=GRAPH_SCHEMA,
    build=compiled_graph_table,
)
