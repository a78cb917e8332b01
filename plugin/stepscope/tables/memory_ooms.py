"""Running out of memory."""

from stepscope.analyses.memory.ooms import SCHEMA, memory_ooms
from stepscope.tables import Table

TABLE = Table(
    title="Out of memory",
    meaning="One row each time that memory ran out: what was asked for, and what lay unused.",
    schema=SCHEMA,
    build=memory_ooms,
)
