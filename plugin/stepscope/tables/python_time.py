"""Python's time between operators."""

from stepscope.analyses.host.python_time import SCHEMA, python_time
from stepscope.tables import Table

TABLE = Table(
    title="Python time",
    meaning="One row a step and library: whose Python code ran between operators, for how long.",
    schema=SCHEMA,
    build=python_time,
)
