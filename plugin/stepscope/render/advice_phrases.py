"""Phrases of advice that all forms share: savings, marks, time budgets, extents."""

from dataclasses import dataclass

from stepscope.base.findings import (
    ClaimReport,
    Confidence,
    Effort,
    Outcome,
    Risk,
    SourceLine,
    Status,
    SuppressedBy,
)
from stepscope.base.formatting import capitalized, duration, duration_range, share, share_range
from stepscope.base.plain_text import plain
from stepscope.base.report import BudgetLine, MergedOutcome, RepresentativeTrace, WorkerReport
from stepscope.render import phrases, settings_text
from stepscope.render.advice_sections import TRACES_SHOWN, AdviceItem, AdviceSections

CONFIDENCE: dict[Confidence, str] = {
    "high": "high confidence",
    "medium": "medium confidence",
    "low": "low confidence",
}
EFFORT: dict[Effort, str] = {
    "flag": "takes an argument or a line",
    "hour": "takes an hour",
    "day": "takes a day or more",
}
RISK: dict[Risk, str] = {
    "none": "changes no results",
    "numerics": "results change a little",
    "memory": "needs more memory",
    "behaviour": "may change the program's behaviour",
}
STATES = {"healthy": "Healthy", "not-applicable": "Not applicable", "cannot-tell": "Inconclusive"}
GROUPS: dict[Status, str] = {
    "cannot-tell": "Inconclusive",
    "failed": "Failed",
    "not-applicable": "Not applicable",
}
SUPPRESSED_BY: dict[SuppressedBy, str] = {
    "": "suppressed",
    "configuration": "suppressed by the configuration",
    "baseline": "suppressed by the baseline",
    "recording": "suppressed by the program itself",
}
NOTHING_FOUND = "No rule found anything to fix."
NOTHING_READ = "No trace was read."
RULED_OUT = "Ruled out"
ESTIMATED = "How this was estimated"
SAVING = "potential saving"
EVENTS_SHOWN = 3
ROWS_SHOWN = 5
LINES_SHOWN = 3
ALSO_SHOWN = 3
REPRESENTS = {
    "slowest": "the slowest",
    "fastest": "the fastest",
    "median": "typical",
    "odd": "unusual",
}
RULES_SHOWN = 4
COVERED = "Related symptom; the same time is counted above"
TENTHS = 1000
"""Tenths of a percent in the whole."""


def savings(item: AdviceItem, per: str) -> str:
    """Return a finding's potential saving in the decisive step, then in the other where it differs.

    Empty where it claims none.
    """
    claim, merged = item.outcome.claim, item.merged
    if claim is None or claim.decisive.high_ns <= 0 or claim.is_covered:
        return ""
    if merged is not None and len(merged.traces) > 1:
        return _merged_saving(merged, per, item.outcome)
    return f"{_saving(claim, per)}{_other(claim)}"


def _saving(claim: ClaimReport, per: str) -> str:
    """Return a saving in the decisive step: `saves 44.4–59.3 ms per step (25.4–33.9 %)`."""
    saving = claim.decisive
    fractions = share_range(saving.share * saving.low_ns / saving.high_ns, saving.share)
    times = duration_range(saving.low_ns, saving.high_ns)
    return f"saves {times} {_per(claim, per)} ({fractions})"


def _per(claim: ClaimReport, per: str) -> str:
    """Return the step to which a saving applies."""
    is_unrecorded = claim.decisive_step == "unrecorded"
    return per.replace("step", "unrecorded step") if is_unrecorded else per


def _other(claim: ClaimReport) -> str:
    """Return the saving in the other step where it differs, as a clause."""
    if not claim.steps_differ or claim.other_high_ns is None:
        return ""
    is_unrecorded = claim.decisive_step == "unrecorded"
    where = "as recorded" if is_unrecorded else "in a step without the profiler"
    return f"; {where} {duration_range(claim.other_low_ns or 0, claim.other_high_ns)}"


def _merged_saving(merged: MergedOutcome, per: str, worst: Outcome) -> str:
    """Return the saving in the worst trace, and its range over all traces."""
    high, low, claim = merged.high_ns, merged.low_ns, worst.claim
    if high is None or low is None:
        return ""
    over_all = duration_range(low, high)
    if claim is None or claim.decisive.high_ns != high:
        per = per if claim is None else _per(claim, per)
        return f"saves {over_all} {per}, depending on the trace"
    is_same = over_all == duration_range(claim.decisive.low_ns, high)
    others = "" if is_same else f"; {over_all} over all traces"
    return f"{_saving(claim, per)} in the worst trace{others}"


def extent(item: AdviceItem) -> str:
    """Return the ranks and steps of a finding as a sentence; empty where both are unknown."""
    parts = (f"in {item.where}" if item.where else "", item.when)
    text = ", ".join(part for part in parts if part)
    return f"{capitalized(text)}." if text else ""


def qualities(outcome: Outcome) -> str:
    """Return a finding's confidence, and the effort and risk of its fix."""
    parts = (
        CONFIDENCE[outcome.confidence] if outcome.confidence else "",
        EFFORT[outcome.effort] if outcome.effort else "",
        RISK[outcome.risk] if outcome.risk else "",
    )
    return ", ".join(part for part in parts if part)


def marks(outcome: Outcome) -> tuple[str, ...]:
    """Return a finding's marks: new, preview, symptom, of another package."""
    parts = (
        {"new": "new", "worse": "worse than before"}.get(outcome.baseline, ""),
        {"preview": "preview", "deprecated": "deprecated"}.get(outcome.life_cycle, ""),
        "symptom" if outcome.is_symptom else "",
        f"from {plain(outcome.package)}" if outcome.package else "",
    )
    return tuple(part for part in parts if part)


def suppression(outcome: Outcome) -> str:
    """Return the source of a suppression, and its reason."""
    by = SUPPRESSED_BY[outcome.suppressed_by]
    return plain(f"{by}: {outcome.reason}" if outcome.reason else by)


def source_line(line: SourceLine) -> str:
    """Return a line of the user's program: `train.py:12 (forward)`."""
    where = f"{line.path}:{line.line}" if line.line > 0 else line.path
    return plain(f"{where} ({line.function})" if line.function else where)


def more(total: int, shown: int, noun: str) -> str:
    """Return the number of items left out; empty where none is."""
    left = total - shown
    return f"and {left:,} more {noun if left == 1 else f'{noun}s'}" if left > 0 else ""


@dataclass(frozen=True, kw_only=True)
class BudgetRow:
    """A part of the time as text; `tenths` of a percent of all rows sum to 1000."""

    category: str
    label: str
    time: str
    tenths: int
    share: str
    recoverable: str
    recoverable_share: float
    """At most, of the whole."""
    rules: tuple[str, ...]


def budget(worker: WorkerReport) -> tuple[BudgetRow, ...]:
    """Return the time by category; the shares as written sum to 100.0 %."""
    whole_ns = sum(line.time_ns for line in worker.budget)
    return tuple(
        BudgetRow(
            category=line.category,
            label=plain(line.label),
            time=duration(line.time_ns),
            tenths=tenths,
            share=share(tenths / TENTHS if tenths or not line.time_ns else 1 / (2 * TENTHS)),
            recoverable=recoverable(line.recoverable_low_ns, line.recoverable_high_ns),
            recoverable_share=line.recoverable_high_ns / max(1, whole_ns),
            rules=line.rules,
        )
        for line, tenths in zip(worker.budget, _tenths(worker.budget), strict=True)
    )


def whole(worker: WorkerReport) -> BudgetRow:
    """Return the total row: of the time, and of savings, which share no nanosecond."""
    low = sum(line.recoverable_low_ns for line in worker.budget)
    high = sum(line.recoverable_high_ns for line in worker.budget)
    time_ns = sum(line.time_ns for line in worker.budget)
    return BudgetRow(
        category="",
        label="Mean step" if worker.step.count else "Total",
        time=duration(time_ns),
        tenths=TENTHS,
        share=share(1.0),
        recoverable=recoverable(low, high),
        recoverable_share=high / max(1, time_ns),
        rules=(),
    )


def saving_heading(worker: WorkerReport) -> str:
    """Return the heading of potential savings, which are of the unrecorded step if it is known."""
    return f"{SAVING}, unrecorded step" if worker.step.unrecorded else SAVING


def recoverable(low_ns: int, high_ns: int) -> str:
    """Return a potential saving as text; a dash where there is none."""
    if high_ns <= 0:
        return "–"
    return duration_range(low_ns, high_ns)


def _tenths(lines: tuple[BudgetLine, ...]) -> list[int]:
    """Distribute 100.0 % over the lines in whole tenths, the largest remainders first."""
    whole_ns = sum(line.time_ns for line in lines)
    exact = [divmod(line.time_ns * TENTHS, max(1, whole_ns)) for line in lines]
    tenths = [part for part, _ in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: (-exact[index][1], index))
    for index in by_remainder[: TENTHS - sum(tenths) if whole_ns else 0]:
        tenths[index] += 1
    return tenths


def verdict(advice: AdviceSections) -> str:
    """Return the run's verdict, the first line of its advice."""
    if advice.lead is None:
        return NOTHING_READ
    return plain(advice.run.verdict or advice.lead.verdict)


def shown_trace(advice: AdviceSections) -> str:
    """Return the name of the trace whose time budget is shown."""
    if advice.lead is None:
        return ""
    name = phrases.trace_name(advice.lead)
    return name if advice.is_single else f"The slowest of {len(advice.run.workers):,}: {name}"


def settings(advice: AdviceSections) -> str:
    """Return the most important recorded settings; empty where there are none."""
    return settings_text.brief(advice.lead.settings) if advice.lead else ""


def lead_verdict(advice: AdviceSections) -> str:
    """Return the shown trace's verdict, unless the run's verdict contains it."""
    lead = advice.lead
    if lead is None or advice.is_single or lead.verdict in advice.run.verdict:
        return ""
    return plain(lead.verdict)


def shown_traces(advice: AdviceSections) -> tuple[tuple[str, str, str], ...]:
    """Return name, step and busy device of each shown trace of several."""
    if advice.is_single:
        return ()
    return tuple(
        (_name(worker), duration(worker.step.mean_ns), _busy(worker)) for worker in advice.shown
    )


def representatives(advice: AdviceSections) -> tuple[str, ...]:
    """Return the reason to show each representative of many traces."""
    if len(advice.run.workers) <= TRACES_SHOWN:
        return ()
    return tuple(
        plain(f"{_rank_or_name(trace)} is {REPRESENTS[trace.kind]}. {trace.reason}")
        for trace in advice.run.representatives
    )


def _rank_or_name(trace: RepresentativeTrace) -> str:
    return f"Rank {trace.rank}" if trace.rank is not None else trace.name


def _name(worker: WorkerReport) -> str:
    rank = f", rank {worker.rank}" if worker.rank is not None else ""
    return plain(f"{worker.name}{rank}, span {worker.span}")


def _busy(worker: WorkerReport) -> str:
    """Return the busy share of the busiest device; a dash where none was recorded."""
    shares = [device.busy_share for device in worker.devices]
    return share(max(shares)) if shares else "–"


def sentence(*parts: str) -> str:
    """Return parts as one sentence."""
    text = "; ".join(part for part in parts if part)
    return f"{capitalized(text)}." if text else ""
