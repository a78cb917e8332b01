"""Operators by name and module."""

from functools import partial

from stepscope.analyses.operators.operator_table import SCHEMAS, operator_table
from stepscope.tables import Table

TABLE = Table(
    title="Operators by module",
    meaning="One row an operator and the module in whose forward or backward pass it ran.",
    schema=SCHEMAS["module"],
    build=partial(operator_table, by="module"),
)
