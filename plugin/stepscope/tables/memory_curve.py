"""Memory over time."""

from stepscope.analyses.memory.curve import SCHEMA, memory_curve
from stepscope.tables import Table

TABLE = Table(
    title="Memory over time",
    meaning="One row an allocation or release: what its device's allocator held behind it.",
    schema=SCHEMA,
    build=memory_curve,
)
