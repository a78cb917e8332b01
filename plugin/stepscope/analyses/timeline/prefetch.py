"""What of a timeline is worth making where the recording is read, beside what that has anyway.

Idle causes and queues rest on what launched what, which the advice has worked out there; elsewhere
it would be worked out again.
"""

from contextlib import suppress

from stepscope.analyses.timeline import counters, idle_slices, timeline
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

KEYS = (
    timeline.KEY,
    f"{idle_slices.__name__}.{idle_slices.idle_slices.__name__}",
    f"{counters.__name__}.{counters.queue_counter.__name__}",
)
"""Their names among a recording's results."""


def compute(trace: Trace) -> None:
    """Leave the timeline in a recording, with what of it would take long when it is first shown."""
    timeline.timeline(trace)
    idle_slices.idle_slices(trace)
    with suppress(MissingDataError):
        counters.queue_counter(trace)
