"""Python functions by what they cost."""

from stepscope.analyses.host.function_costs import SCHEMA, function_costs
from stepscope.tables import Table

TABLE = Table(
    title="Source lines",
    meaning="One row a Python function: its own time, what it calls, and what it launches.",
    schema=SCHEMA,
    build=function_costs,
)
