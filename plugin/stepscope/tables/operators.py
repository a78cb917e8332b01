"""Operators by name."""

from stepscope.analyses.operators.operator_table import SCHEMAS, operator_table
from stepscope.tables import Table

TABLE = Table(
    title="Operators",
    meaning="One row an operator or annotation: its calls, and what they cost host and devices.",
    schema=SCHEMAS["name"],
    build=operator_table,
)
