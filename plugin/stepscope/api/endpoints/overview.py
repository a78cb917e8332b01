"""Where the step time of one recording goes."""

from stepscope.api.endpoint import Query, TraceEndpoint
from stepscope.api.messages import Overview
from stepscope.api.overview import overview
from stepscope.model.trace import Trace


def ask(trace: Trace, _: Query) -> Overview:
    """Answer with the overview."""
    return overview(trace)


ENDPOINTS = (
    TraceEndpoint(
        path="overview",
        meaning="Step time by category, devices, idle causes, and what takes longest.",
        response=Overview,
        handler=ask,
    ),
)
