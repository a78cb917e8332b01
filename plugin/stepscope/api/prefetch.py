"""What is worked out of a recording before anybody asks, in the process that reads it.

It is handed there by its name, so everything is imported when it is called.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from stepscope.readers.tasks import summarise

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.model.trace import Trace
    from stepscope.summaries.summary import Summary

LARGE_COUNT = 500_000
"""Events from which the timeline takes longer to make than anybody should wait for a view."""


def prepare(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "Summary":
    """Return a recording's summary, and leave in it what would keep a visitor waiting.

    That is the overview, which every visit asks for first, and the timeline of a large recording.
    The summary is kept when the recording is not; its advice is by the settings of the run.
    """
    from stepscope.analyses.timeline import prefetch
    from stepscope.api.endpoints.overview import overview

    # What fails here fails again when it is asked for, and says so there.
    with suppress(Exception):
        overview(trace)
    summary = summarise(trace, settings=settings)
    if len(trace) >= LARGE_COUNT:
        with suppress(Exception):
            prefetch.compute(trace)
    return summary
