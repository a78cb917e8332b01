"""Phrases that rules' messages share: times per step, the device, lists of names."""

from collections.abc import Sequence

from stepscope.analyses.core.window import window
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace


def per_step(trace: Trace) -> str:
    """Return the scope of a figure: `per step`, or `in total` where there are no steps."""
    return "per step" if window(trace).has_steps else "in total"


def time(trace: Trace, time_ns: float) -> str:
    """Return a time of the window as `3.10 ms per step`."""
    return f"{duration(window(trace).per_step(time_ns))} {per_step(trace)}"


def time_and_fraction(trace: Trace, time_ns: float) -> str:
    """Return a time of the window as `3.10 ms per step (9.3 %)`."""
    return f"{time(trace, time_ns)} ({share(fraction_of_window(trace, time_ns))})"


def fraction_of_window(trace: Trace, time_ns: float) -> float:
    """Return a time of the window as a fraction of it, 0 to 1."""
    return time_ns / window(trace).reference_ns


def device(trace: Trace) -> str:
    """Return the device as a sentence names it: `the GPU`."""
    return f"the {trace.dialect.device}"


def joined(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
