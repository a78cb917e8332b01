"""What advice is called, in every form alike: savings, marks, budgets, places."""

from dataclasses import dataclass

from stepscope.base.findings import (
    Confidence,
    Effort,
    Outcome,
    Risk,
    SourceLine,
    Status,
    SuppressedBy,
)
from stepscope.base.formatting import duration, share
from stepscope.base.report import BudgetLine, MergedOutcome, RepresentativeTrace, WorkerReport
from stepscope.render import phrases, settings_text
from stepscope.render.advice_sections import RECORDINGS_SHOWN, Advised, Told
from stepscope.render.phrases import capitalised, plain

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
    "behaviour": "may change what the program does",
}
STATES = {"healthy": "Healthy", "not-applicable": "Not applicable", "cannot-tell": "Cannot tell"}
GROUPS: dict[Status, str] = {
    "cannot-tell": "Cannot tell",
    "failed": "Failed",
    "not-applicable": "Not applicable",
}
SUPPRESSED_BY: dict[SuppressedBy, str] = {
    "": "put aside",
    "configuration": "put aside by the configuration",
    "baseline": "put aside by the baseline",
    "recording": "put aside by the program itself",
}
NOTHING_FOUND = "No rule found anything to fix."
NOTHING_READ = "No recording was read."
REJECTED = "Considered and rejected"
EVENTS_SHOWN = 3
ROWS_SHOWN = 5
LINES_SHOWN = 3
ALSO_SHOWN = 3
REPRESENTS = {
    "slowest": "the slowest",
    "fastest": "the quickest",
    "median": "as most are",
    "odd": "unlike the others",
}
RULES_SHOWN = 4
COVERED = "Seen too; the same time is counted above"
TENTHS = 1000
"""Of a percent in the whole."""


def savings(told: Told, per: str) -> str:
    """Say what a finding could save; empty where it claims nothing."""
    claim, merged = told.outcome.claim, told.merged
    if claim is None or claim.net_high_ns <= 0:
        return ""
    if merged is not None and len(merged.traces) > 1:
        return _merged_saving(merged, per, told.outcome)
    least = ""
    if 0 < claim.net_low_ns < claim.net_high_ns:
        least = f", at least {duration(claim.net_low_ns)}"
    return f"saves up to {duration(claim.net_high_ns)} {per} ({share(claim.net_share)}){least}"


def _merged_saving(merged: MergedOutcome, per: str, worst: Outcome) -> str:
    """Say what it could save where it costs most, in the median recording, and at least."""
    high, median, low = merged.net_high_ns, merged.net_median_ns, merged.net_low_ns
    if high is None or median is None or low is None:
        return ""
    of_step = ""
    if worst.claim is not None and worst.claim.net_high_ns == high:
        of_step = f" ({share(worst.claim.net_share)})"
    least = f", at least {duration(low)}" if 0 < low < high else ""
    middle = f"; the median recording {duration(median)}" if median < high else ""
    return f"saves up to {duration(high)} {per}{of_step} where it costs most{middle}{least}"


def place(each: Told) -> str:
    """Say where and when something was found, as a sentence; empty where neither is told."""
    parts = (f"in {each.where}" if each.where else "", each.when)
    text = ", ".join(part for part in parts if part)
    return f"{capitalised(text)}." if text else ""


def qualities(outcome: Outcome) -> str:
    """Say how sure a finding is, what its fix takes, and what that may change."""
    parts = (
        CONFIDENCE[outcome.confidence] if outcome.confidence else "",
        EFFORT[outcome.effort] if outcome.effort else "",
        RISK[outcome.risk] if outcome.risk else "",
    )
    return ", ".join(part for part in parts if part)


def marks(outcome: Outcome) -> tuple[str, ...]:
    """Return what sets a finding apart: new, on trial, of another package, no cause."""
    parts = (
        {"new": "new", "worse": "worse than before"}.get(outcome.baseline, ""),
        {"preview": "preview", "deprecated": "deprecated"}.get(outcome.life_cycle, ""),
        "a symptom" if outcome.is_symptom else "",
        f"from {plain(outcome.package)}" if outcome.package else "",
    )
    return tuple(part for part in parts if part)


def aside(outcome: Outcome) -> str:
    """Say who put a finding aside, and why."""
    by = SUPPRESSED_BY[outcome.suppressed_by]
    return plain(f"{by}: {outcome.reason}" if outcome.reason else by)


def source_line(line: SourceLine) -> str:
    """Name a line of the user's program: `train.py:12 (forward)`."""
    where = f"{line.path}:{line.line}" if line.line > 0 else line.path
    return plain(f"{where} ({line.function})" if line.function else where)


def more(total: int, shown: int, noun: str) -> str:
    """Say how many are left out; empty where none is."""
    left = total - shown
    return f"and {left:,} more {noun if left == 1 else f'{noun}s'}" if left > 0 else ""


@dataclass(frozen=True, kw_only=True)
class BudgetRow:
    """A part of the time, in words; `tenths` of a percent of all rows sum to 1000."""

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
    """Return where the time goes; the shares as they are written sum to 100.0 %."""
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
    """Return the row that the others sum to; each nanosecond is won once, so that does too."""
    low = sum(line.recoverable_low_ns for line in worker.budget)
    high = sum(line.recoverable_high_ns for line in worker.budget)
    time_ns = sum(line.time_ns for line in worker.budget)
    return BudgetRow(
        category="",
        label="Mean step" if worker.step.count else "All",
        time=duration(time_ns),
        tenths=TENTHS,
        share=share(1.0),
        recoverable=recoverable(low, high),
        recoverable_share=high / max(1, time_ns),
        rules=(),
    )


def recoverable(low_ns: int, high_ns: int) -> str:
    """Say how much could be won back; a dash where no finding claims any."""
    if high_ns <= 0:
        return "–"
    low, high = duration(low_ns), duration(high_ns)
    return high if low == high else f"{low} to {high}" if low_ns else f"up to {high}"


def _tenths(lines: tuple[BudgetLine, ...]) -> list[int]:
    """Share 100.0 % among the lines in whole tenths, the largest remainders first."""
    whole_ns = sum(line.time_ns for line in lines)
    exact = [divmod(line.time_ns * TENTHS, max(1, whole_ns)) for line in lines]
    tenths = [part for part, _ in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: (-exact[place][1], place))
    for place in by_remainder[: TENTHS - sum(tenths) if whole_ns else 0]:
        tenths[place] += 1
    return tenths


def verdict(advice: Advised) -> str:
    """Return what is said of a run, first of all."""
    if advice.lead is None:
        return NOTHING_READ
    return plain(advice.run.verdict or advice.lead.verdict)


def recording(advice: Advised) -> str:
    """Say whose time is told."""
    if advice.lead is None:
        return ""
    told = phrases.recording(advice.lead)
    return told if advice.is_single else f"The slowest of {len(advice.run.workers):,}: {told}"


def settings(advice: Advised) -> str:
    """Return the recorded settings that matter most; empty where there are none."""
    return settings_text.brief(advice.lead.settings) if advice.lead else ""


def own_verdict(advice: Advised) -> str:
    """Return what is said of the recording whose time is told, where the run's verdict does not."""
    lead = advice.lead
    if lead is None or advice.is_single or lead.verdict in advice.run.verdict:
        return ""
    return plain(lead.verdict)


def recordings(advice: Advised) -> tuple[tuple[str, str, str], ...]:
    """Return of the recordings to be shown, where there are several, name, step, busy device."""
    if advice.is_single:
        return ()
    return tuple(
        (_name(worker), duration(worker.step.mean_ns), _busy(worker)) for worker in advice.shown
    )


def represented(advice: Advised) -> tuple[str, ...]:
    """Return why these recordings are shown of many."""
    if len(advice.run.workers) <= RECORDINGS_SHOWN:
        return ()
    return tuple(
        plain(f"{_rank_or_name(each)} is {REPRESENTS[each.kind]}. {each.reason}")
        for each in advice.run.representatives
    )


def _rank_or_name(each: RepresentativeTrace) -> str:
    return f"Rank {each.rank}" if each.rank is not None else each.name


def _name(worker: WorkerReport) -> str:
    rank = f", rank {worker.rank}" if worker.rank is not None else ""
    return plain(f"{worker.name}{rank}, span {worker.span}")


def _busy(worker: WorkerReport) -> str:
    """Say how busy the busiest device was; a dash where none was recorded."""
    shares = [device.busy_share for device in worker.devices]
    return share(max(shares)) if shares else "–"


def sentence(*parts: str) -> str:
    """Return parts as one sentence."""
    text = "; ".join(part for part in parts if part)
    return f"{capitalised(text)}." if text else ""
