"""What sentences and columns say of the time that their figures are of."""

from stepscope.analyses.core.window import window
from stepscope.base.formatting import duration
from stepscope.model.trace import Trace


def each(trace: Trace) -> str:
    """Return what figures are of: `a step` or `in all`."""
    return "a step" if window(trace).has_steps else "in all"


def a_step(trace: Trace) -> str:
    """Return what goes behind a figure: ` a step`, or nothing where there are no steps."""
    return " a step" if window(trace).has_steps else ""


def lasting(trace: Trace, time_ns: float) -> str:
    """Say how long something took: `3.10 ms a step`."""
    return f"{duration(window(trace).per_step(time_ns))} {each(trace)}"
