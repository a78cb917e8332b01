"""A part of a recording as a file of its own."""

from dataclasses import dataclass

from stepscope.analyses.core.trace_cut import cut, time_of_steps
from stepscope.model.trace import Trace
from stepscope.render import chrome_trace
from stepscope.render.chrome_trace import Written
from stepscope.storage.output_files import atomic_output


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which part of a recording to write, and where."""

    path: str
    time_ns: tuple[int, int] | None = None
    """From when to when; None where steps are meant."""
    steps: tuple[int, int] | None = None
    """The first and the last."""
    is_repaired: bool = True


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was written."""

    start_ns: int
    end_ns: int
    of_count: int
    """Events that the recording has."""
    written: Written


def write(trace: Trace, request: Request) -> Answer:
    """Write the part of a recording that is asked for.

    Raises:
        MissingDataError: the recording has no steps.
        UsageError: it has none of these.
        OSError: the recording cannot be read again, or nothing can be written there.
    """
    start_ns, end_ns = request.time_ns or time_of_steps(trace, *(request.steps or (0, 0)))
    part = cut(trace, start_ns, end_ns, is_repaired=request.is_repaired)
    with atomic_output(request.path) as sink:
        done = chrome_trace.write(trace, part, sink)
    return Answer(start_ns=start_ns, end_ns=end_ns, of_count=len(trace), written=done)
