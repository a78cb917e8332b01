"""Calls of Python functions, one by one."""

from stepscope.model.frames.python_calls import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Python calls",
    meaning="One row a call of a Python function or module, as `with_stack=True` records.",
    schema=SCHEMA,
    build=lambda trace: trace.python_calls,
)
