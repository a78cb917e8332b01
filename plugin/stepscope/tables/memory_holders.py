"""Who holds the memory at its peak, by operator."""

from functools import partial

from stepscope.analyses.memory.holders import SCHEMA, memory_holders
from stepscope.tables import Table

TABLE = Table(
    title="Memory held at the peak, by operator",
    meaning="One row a device and operator: how much of the device's peak it had asked for.",
    schema=SCHEMA,
    build=partial(memory_holders, by="operator"),
)
