"""Triton kernels."""

from stepscope.analyses.compiled.triton_kernels import SCHEMA, triton_kernel_table
from stepscope.tables import Table

TABLE = Table(
    title="Triton kernels",
    meaning="One row a Triton kernel, configuration and arguments: its source, how it was "
    "launched, and its time.",
    schema=SCHEMA,
    build=triton_kernel_table,
)
