"""Kernels by name."""

from stepscope.analyses.devices.kernel_table import LAUNCH_COLUMNS, SCHEMA, kernel_table
from stepscope.tables import Table

TABLE = Table(
    title="Kernels",
    meaning="One row a kernel name: how often it ran, for how long, and how it filled the device.",
    schema=tuple(column for column in SCHEMA if column.name not in LAUNCH_COLUMNS),
    build=kernel_table,
)
