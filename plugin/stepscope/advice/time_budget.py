"""Where the time of a step goes, and how much of each part could be won back."""

from collections.abc import Sequence

from stepscope.advice.savings import ResolvedFinding, Share
from stepscope.analyses.core.window import window
from stepscope.analyses.steps.step_breakdown import CATEGORIES, exclusive_times, step_breakdown
from stepscope.base.report import BudgetLine
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


def budget(trace: Trace, found: Sequence[ResolvedFinding]) -> tuple[BudgetLine, ...]:
    """Return the mean step's parts; they sum to it, and no part holds more than it could lose."""
    mean_ns = step_breakdown(trace).mean_ns
    parts = step_breakdown(trace).mean_parts_ns
    times = exclusive_times(trace)
    return tuple(
        _line(trace, category, parts[category], mean_ns, _won(found, times[category]))
        for category in CATEGORIES
        if parts[category]
    )


def _won(found: Sequence[ResolvedFinding], times: Intervals) -> dict[str, tuple[float, float]]:
    """Return for each rule what it could win at least and at most of some times."""
    won: dict[str, tuple[float, float]] = {}
    for each in found:
        for share in each.shares:
            low, high = won.get(each.rule.id, (0.0, 0.0))
            more_low, more_high = _within(share, times)
            won[each.rule.id] = (low + more_low, high + more_high)
    return {rule: both for rule, both in won.items() if both[1] > 0}


def _within(share: Share, times: Intervals) -> tuple[float, float]:
    high = share.high * intervals.duration_ns(intervals.intersection(share.times, times))
    low = share.low * intervals.duration_ns(intervals.intersection(share.low_times, times))
    return min(low, high), high


def _line(
    trace: Trace, category: str, time_ns: int, whole_ns: int, won: dict[str, tuple[float, float]]
) -> BudgetLine:
    per_step = window(trace).per_step
    return BudgetLine(
        category=category,
        label=CATEGORIES[category][0],
        time_ns=time_ns,
        share=time_ns / whole_ns,
        recoverable_low_ns=min(time_ns, per_step(sum(low for low, _ in won.values()))),
        recoverable_high_ns=min(time_ns, per_step(sum(high for _, high in won.values()))),
        rules=tuple(sorted(won, key=lambda rule: -won[rule][1])),
    )
