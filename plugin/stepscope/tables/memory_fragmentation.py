"""Reserved memory that lies idle."""

from stepscope.analyses.memory.fragmentation import SCHEMA, memory_fragmentation
from stepscope.tables import Table

TABLE = Table(
    title="Fragmentation of memory",
    meaning="One row a device with a caching allocator: how much of what it reserved lay idle.",
    schema=SCHEMA,
    build=memory_fragmentation,
)
