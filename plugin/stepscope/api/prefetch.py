"""Results computed in the process that reads a trace, before the page requests them.

The reading process receives the function by name, so it imports modules when it is called.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from stepscope.readers.tasks import summarise

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.model.trace import Trace
    from stepscope.summaries.summary import Summary

LARGE_COUNT = 500_000
"""Number of events from which the timeline is computed in advance."""


def prepare(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "Summary":
    """Return a trace's summary, and compute in advance the results that the page requests first.

    These are the overview, and the timeline of a large trace. The summary outlives the trace's
    events; its advice follows the settings of the run.
    """
    from stepscope.analyses.timeline import prefetch
    from stepscope.api.endpoints.overview import overview

    # A failure here recurs, with its message, when the page requests the result.
    with suppress(Exception):
        overview(trace)
    summary = summarise(trace, settings=settings)
    if len(trace) >= LARGE_COUNT:
        with suppress(Exception):
            prefetch.compute(trace)
    return summary
