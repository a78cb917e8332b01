"""Graph launches."""

from stepscope.analyses.compiled.graph_launches import SCHEMA, graph_launch_table
from stepscope.tables import Table

TABLE = Table(
    title="Graph launches",
    meaning="One row a launch of a recorded graph (CUDA or HIP): the host's call, and what the "
    "replay did on the device.",
    schema=SCHEMA,
    build=graph_launch_table,
)
