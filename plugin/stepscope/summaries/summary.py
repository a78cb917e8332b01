"""The summary of one trace."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from stepscope.advice import AdviceSettings, TraceAdvice, advise_trace, run_report
from stepscope.advice.settings import DEFAULT
from stepscope.analyses.communication.rank_summary import rank_summary
from stepscope.base import urls
from stepscope.base.errors import in_one_line
from stepscope.base.report import RunReport
from stepscope.comparison.samples import Sample, sample
from stepscope.comparison.trends import Trend, trend
from stepscope.model.trace import Trace

log = logging.getLogger(__name__)

T = TypeVar("T")


PARTS = (rank_summary, trend, sample)
"""The functions of a trace whose results its summary holds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """Results of a trace that its run needs."""

    events: int
    advice: TraceAdvice
    trend: Trend | None
    """None if it cannot be computed."""
    sample: Sample | None
    """None if it cannot be computed, or was not loaded from the store."""

    def part(self, of: object) -> tuple[Any] | None:
        """Return the result of a function of the trace, in a tuple; None if it is missing.

        `of` is one of `PARTS`.
        """
        if of is rank_summary and self.advice.part is not None:
            return (self.advice.part,)
        if of is trend and self.trend is not None:
            return (self.trend,)
        if of is sample and self.sample is not None:
            return (self.sample,)
        return None


def summarise(trace: Trace, *, settings: AdviceSettings = DEFAULT) -> Summary:
    """Return a trace's summary; `settings` are those of its run (`of_run`).

    Raises:
        UsageError: The settings name an unknown rule or option.
    """
    advice = advise_trace(trace, settings)
    report = run_report("", [advice], settings)
    return Summary(
        events=len(trace),
        advice=advice,
        trend=_unless_it_fails(trace, lambda: trend(trace, report)),
        sample=_unless_it_fails(trace, lambda: sample(trace, report)),
    )


def report_of(trace: Trace, settings: AdviceSettings) -> RunReport:
    """Return the advice on a trace alone, which its trend and comparison need."""
    return run_report("", [advise_trace(trace, settings)], settings)


def _unless_it_fails(trace: Trace, work: Callable[[], T]) -> T | None:
    """Return the result of some work; None if it fails, so that the advice is still returned."""
    try:
        return work()
    except MemoryError:
        raise
    except Exception as error:  # the error is reported when this part is requested
        path = urls.redacted(trace.path)
        log.warning("%s: a part of its summary is omitted: %s", path, in_one_line(error))
        return None
