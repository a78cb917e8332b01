"""One operator or annotation in detail."""

from stepscope.api.endpoint import TimeRangeQuery, TraceEndpoint
from stepscope.api.name_details import OperatorDetails
from stepscope.api.operator_details import Chosen, operator_details
from stepscope.model.trace import Trace


class OneOperator(TimeRangeQuery, frozen=True, kw_only=True):
    """Which operator, as a row of the table of operators names it."""

    name: str
    """All steps are `ProfilerStep*`."""
    kind: str = "operator"
    """`operator` or `annotation`."""
    group: str = "name"
    """The table's grouping."""
    label: str = ""
    """What the grouping adds to the name: shapes, stack or module; empty: none."""


def details(trace: Trace, query: OneOperator) -> OperatorDetails:
    """Answer with everything about an operator's calls."""
    chosen = Chosen(name=query.name, kind=query.kind, group=query.group, label=query.label)
    return operator_details(trace, chosen)


ENDPOINTS = (
    TraceEndpoint(
        path="operators/details",
        meaning="An operator's calls: how long, when, of what shapes, from where, which kernels.",
        query=OneOperator,
        response=OperatorDetails,
        handler=details,
    ),
)
