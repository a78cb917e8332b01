"""Graph breaks."""

from stepscope.analyses.compiled.compiled_regions import BREAK_SCHEMA, graph_break_table
from stepscope.tables import Table

TABLE = Table(
    title="Graph breaks",
    meaning="One row a pair of compiled regions of which one called the other: a break in a graph, "
    "and what it cost.",
    schema=BREAK_SCHEMA,
    build=graph_break_table,
)
