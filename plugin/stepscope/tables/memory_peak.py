"""Each device's peak of memory."""

from stepscope.analyses.memory.at_peak import SCHEMA, memory_peak_table
from stepscope.tables import Table

TABLE = Table(
    title="Peak of memory",
    meaning="One row a device: the most it held, since when, and how much of that is told.",
    schema=SCHEMA,
    build=memory_peak_table,
)
