"""Parts of the timeline that are computed while the trace is being read.

Idle causes and queues rest on the links from launches to device work, which the advice has computed
there; elsewhere they would be computed again.
"""

from contextlib import suppress

from stepscope.analyses.timeline import counters, timeline
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

KEYS = (
    timeline.KEY,
    f"{timeline.__name__}.{timeline.idle_slices.__name__}",
    f"{counters.__name__}.{counters.queue_counter.__name__}",
)
"""Their keys in a trace's results."""


def compute(trace: Trace) -> None:
    """Compute the timeline, and its parts that would delay the first view."""
    timeline.timeline(trace)
    timeline.idle_slices(trace)
    with suppress(MissingDataError):
        counters.queue_counter(trace)
