"""What the API's routes ask for; each is a function that tests can put another in place of."""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.advice import RecordingAdvice, advice_of
from stepscope.api.messages import Overview, Table
from stepscope.api.overview import overview
from stepscope.api.tables import kernels_table, operators_table
from stepscope.trace import Trace


def advice(trace: Trace) -> RecordingAdvice:
    """Return what every rule says of a recording."""
    return advice_of(trace)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Where the answers come from."""

    advice: Callable[[Trace], RecordingAdvice] = advice
    overview: Callable[[Trace], Overview] = overview
    operators: Callable[[Trace, str], Table] = operators_table
    kernels: Callable[[Trace, str], Table] = kernels_table
