"""Device work by type."""

from stepscope.analyses.devices.kernel_breakdown import STATISTICS, type_statistics
from stepscope.tables import Table

TABLE = Table(
    title="Kernel types",
    meaning="One row a device and type of work (computing, communication, memory): how often it"
    " ran and for how long.",
    schema=STATISTICS,
    build=type_statistics,
)
