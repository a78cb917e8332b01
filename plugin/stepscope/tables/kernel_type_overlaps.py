"""Types of device work that ran at once."""

from stepscope.analyses.devices.kernel_breakdown import OVERLAPS, type_overlaps
from stepscope.tables import Table

TABLE = Table(
    title="Overlaps of kernel types",
    meaning="One row a device and set of types of work: how long these ran at once and no other.",
    schema=OVERLAPS,
    build=type_overlaps,
)
