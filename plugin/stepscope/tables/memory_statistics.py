"""Memory by operator."""

from stepscope.analyses.memory.operator_memory import SCHEMA, memory_statistics
from stepscope.tables import Table

TABLE = Table(
    title="Memory by operator",
    meaning="One row a device and operator: what its calls allocated and freed there.",
    schema=SCHEMA,
    build=memory_statistics,
)
