"""What the API's routes ask for; each is a function that tests can put another in place of."""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.advice import AdviceSettings, RecordingAdvice, advice_of
from stepscope.api.messages import Overview, Table
from stepscope.api.overview import overview
from stepscope.api.tables import kernels_table, operators_table
from stepscope.trace import Trace


def advice(trace: Trace, settings: AdviceSettings | None = None) -> RecordingAdvice:
    """Return what the rules say of a recording, by the settings of its run."""
    return advice_of(trace) if settings is None else advice_of(trace, settings)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Where the answers come from."""

    advice: Callable[[Trace], RecordingAdvice] = advice
    overview: Callable[[Trace], Overview] = overview
    operators: Callable[[Trace, str], Table] = operators_table
    kernels: Callable[[Trace, str], Table] = kernels_table
