"""Operators by name and the Python functions they were called from."""

from functools import partial

from stepscope.analyses.operators.operator_table import SCHEMAS, operator_table
from stepscope.tables import Table

TABLE = Table(
    title="Operators by stack",
    meaning="One row an operator and the five innermost Python functions around it.",
    schema=SCHEMAS["stack"],
    build=partial(operator_table, by="stack"),
)
