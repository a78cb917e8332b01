"""Operators and annotations, one row a call."""

from stepscope.model.frames.host_calls import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Host calls",
    meaning="One row a call of an operator or an annotation, nested, in the order they began.",
    schema=SCHEMA,
    build=lambda trace: trace.host_calls,
)
