"""What is worked out of a recording before anybody asks, in the process that reads it.

It is handed there by its name, so everything is imported when it is called.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings, RecordingAdvice
    from stepscope.trace import Trace


def prepare(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "RecordingAdvice":
    """Return a recording's advice, and leave in it the overview, which every visit asks for first.

    The advice is kept when the recording is not; it is by the settings of the run.
    """
    from stepscope.api.answers import advice
    from stepscope.api.overview import overview

    with suppress(Exception):  # it fails again when it is asked for, and says so there
        overview(trace)
    return advice(trace, settings)
