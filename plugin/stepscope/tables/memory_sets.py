"""Memory sets by operator and source line."""

from stepscope.analyses.devices.transfer_table import MEMORY_SETS, memory_sets
from stepscope.tables import Table

TABLE = Table(
    title="Memory sets",
    meaning="One row a kind of memory set (filling with a value), the operator that asked for it,"
    " and the line of the user's own code that led there.",
    schema=MEMORY_SETS,
    build=memory_sets,
)
