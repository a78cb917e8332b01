"""Graph nodes."""

from stepscope.analyses.compiled.graph_launches import NODE_SCHEMA, graph_node_table
from stepscope.tables import Table

TABLE = Table(
    title="Graph nodes",
    meaning="One row a node of a recorded graph: the kernel, copy or memory set, and how long it "
    "took in the replays.",
    schema=NODE_SCHEMA,
    build=graph_node_table,
)
