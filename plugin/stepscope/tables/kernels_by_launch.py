"""Kernels by name, operator and the way they were launched."""

from functools import partial

from stepscope.analyses.devices.kernel_table import SCHEMA, kernel_table
from stepscope.tables import Table

TABLE = Table(
    title="Kernels by launch",
    meaning="One row a kernel, the operator that launched it, and the grid, block, registers and"
    " shared memory with which it ran.",
    schema=SCHEMA,
    build=partial(kernel_table, by="launch"),
)
