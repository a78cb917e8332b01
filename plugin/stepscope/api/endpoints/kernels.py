"""One kernel in detail."""

from stepscope.api.endpoint import TimeRangeQuery, TraceEndpoint
from stepscope.api.kernel_details import Chosen, kernel_details
from stepscope.api.name_details import KernelDetails
from stepscope.model.trace import Trace


class OneKernel(TimeRangeQuery, frozen=True, kw_only=True):
    """Which kernel, as a row of the table of kernels names it."""

    full_name: str
    """As the profiler wrote it."""
    operator: str | None = None
    """Only launched by this operator; empty: by none that is known."""
    grid: str | None = None
    """Only with this grid (JSON); empty: where none was recorded."""
    block: str | None = None
    """Only with this block (JSON); empty: where none was recorded."""
    device: int | None = None
    """Only on this device, by its number."""
    stream: int | None = None
    """Only on this stream; -1: where none was recorded."""


def details(trace: Trace, query: OneKernel) -> KernelDetails:
    """Answer with everything about a kernel's runs."""
    chosen = Chosen(
        full_name=query.full_name,
        operator=query.operator,
        grid=query.grid,
        block=query.block,
        device=query.device,
        stream=query.stream,
    )
    return kernel_details(trace, chosen)


ENDPOINTS = (
    TraceEndpoint(
        path="kernels/details",
        meaning="A kernel's runs: how long, when, how launched, by which operators.",
        query=OneKernel,
        response=KernelDetails,
        handler=details,
    ),
)
