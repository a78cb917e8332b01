"""Operators by name, autograd's wrappers folded."""

from functools import partial

from stepscope.analyses.operators.operator_table import SCHEMAS, operator_table
from stepscope.tables import Table

TABLE = Table(
    title="Operators, autograd folded",
    meaning="One row an operator; what autograd's engine does around a node is the node's.",
    schema=SCHEMAS["node"],
    build=partial(operator_table, by="node"),
)
