"""Operators by name and input shapes."""

from functools import partial

from stepscope.analyses.operators.operator_table import SCHEMAS, operator_table
from stepscope.tables import Table

TABLE = Table(
    title="Operators by input shape",
    meaning="One row an operator and the shapes of its inputs, as `record_shapes=True` records.",
    schema=SCHEMAS["shape"],
    build=partial(operator_table, by="shape"),
)
