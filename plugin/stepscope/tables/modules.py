"""Modules by path."""

from stepscope.analyses.host.module_table import SCHEMA, module_table
from stepscope.tables import Table

TABLE = Table(
    title="Modules",
    meaning="One row an nn.Module by the modules that called it: its forward and backward pass.",
    schema=SCHEMA,
    build=module_table,
)
