"""Operators by name and all Python functions they were called from."""

from functools import partial

from stepscope.analyses.operators.operator_table import SCHEMAS, operator_table
from stepscope.tables import Table

TABLE = Table(
    title="Operators by full stack",
    meaning="One row an operator and all Python functions around it.",
    schema=SCHEMAS["full_stack"],
    build=partial(operator_table, by="full_stack"),
)
