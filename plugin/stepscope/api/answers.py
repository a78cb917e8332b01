"""What the API's routes ask for; each is a function that tests can put another in place of."""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.advice import advise
from stepscope.api.messages import Overview, Table
from stepscope.api.overview import overview
from stepscope.api.tables import kernels_table, operators_table
from stepscope.report import RunReport
from stepscope.trace import Run, Trace


def advice(trace: Trace) -> RunReport:
    """Return what every rule says of a recording."""
    return advise(Run(name="", workers=(trace,)))


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Where the answers come from."""

    advice: Callable[[Trace], RunReport] = advice
    overview: Callable[[Trace], Overview] = overview
    operators: Callable[[Trace, str], Table] = operators_table
    kernels: Callable[[Trace, str], Table] = kernels_table
