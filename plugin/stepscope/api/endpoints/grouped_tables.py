"""The tables of operators and kernels, by one grouping or another."""

from stepscope.api.endpoint import TimeRangeQuery, TraceEndpoint
from stepscope.api.grouped_tables import kernels_table, operators_table
from stepscope.api.messages import Table
from stepscope.model.trace import Trace


class Grouped(TimeRangeQuery, frozen=True, kw_only=True):
    """What the rows stand for."""

    group: str = "name"
    """One of the answer's `groups`."""


def operators(trace: Trace, query: Grouped) -> Table:
    """Answer with the table of operators."""
    return operators_table(trace, query.group)


def kernels(trace: Trace, query: Grouped) -> Table:
    """Answer with the table of kernels."""
    return kernels_table(trace, query.group)


ENDPOINTS = (
    TraceEndpoint(
        path="operators",
        meaning="Operators and annotations, by name, or by name and `shape`, `stack` or `module`.",
        query=Grouped,
        response=Table,
        handler=operators,
    ),
    TraceEndpoint(
        path="kernels",
        meaning="Kernels, by name, or by name and `launch` or `stream`.",
        query=Grouped,
        response=Table,
        handler=kernels,
    ),
)
