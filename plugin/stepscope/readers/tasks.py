"""What readers work out of a recording, by names that cost nothing to import.

A task is handed to a reader's process by its name; what it needs is imported where it is done.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.comparison.sampling import Sample
    from stepscope.exports import Given, Request
    from stepscope.report import FileHealth, RunReport
    from stepscope.trace import Trace


def analyse(trace: "Trace") -> None:
    """Leave in a recording what all advice rests on."""
    from stepscope.advice import worker_report

    worker_report(trace)


def advise(trace: "Trace") -> "RunReport":
    """Return what every rule says of a recording."""
    from stepscope import advice
    from stepscope.trace import Run

    return advice.advise(Run(name="", workers=(trace,)))


def judge(trace: "Trace", *, run: str, file_bytes: int) -> "FileHealth":
    """Return what a file is worth."""
    from stepscope.advice import file_health

    return file_health(trace, run=run, file_bytes=file_bytes)


def tabulate(trace: "Trace", *, request: "Request") -> "dict[str, Given]":
    """Write what a recording has of each table that is asked for."""
    from stepscope import exports

    return exports.tabulate(trace, request)


def sample(trace: "Trace") -> "Sample":
    """Return what of a recording is compared."""
    from stepscope.comparison import sampling

    return sampling.sample(trace)
