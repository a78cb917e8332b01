"""Phrases of a comparison: changes with their sign, names, significance."""

from collections.abc import Sequence

from stepscope.analyses.core.kernel_names import short
from stepscope.base import formatting
from stepscope.base.plain_text import plain
from stepscope.comparison.messages import (
    AdviceChange,
    AdviceStatus,
    Change,
    Comparable,
    Comparison,
    Part,
    Row,
    Saving,
    SettingChange,
    Side,
    Status,
)
from stepscope.comparison.significance import LEAST_STEPS
from stepscope.render.phrases import sentences, value

MINUS = "\N{MINUS SIGN}"
ARROW = "\N{RIGHTWARDS ARROW}"
NOISE = "·"
"""Marks a change that is not statistically significant."""
STATUS: dict[Status, str] = {
    "added": "new",
    "gone": "gone",
    "slower": "slower",
    "faster": "faster",
    "other-calls": "other calls",
    "same": "not significant",
    "untested": "untested",
}
NEUTRAL: dict[Status, str] = {**STATUS, "slower": "more time", "faster": "less time"}
"""Labels where the sides are not comparable."""
ADVICE: dict[AdviceStatus, str] = {
    "fixed": "FIXED",
    "new": "NEW",
    "worse": "WORSE",
    "better": "BETTER",
    "still": "STILL THERE",
    "not-checked": "NOT CHECKED",
}
ADVICE_OF_SIDES: dict[AdviceStatus, str] = {
    "fixed": "ONLY BEFORE",
    "new": "ONLY AFTER",
    "worse": "BOTH",
    "better": "BOTH",
    "still": "BOTH",
    "not-checked": "NOT CHECKED",
}
"""Labels where the sides are not comparable."""
CHANGED = ("added", "gone", "slower", "faster", "other-calls")
LEAST_POINTS = 0.01
"""Percentage points below which a change is not shown as a number."""


def amount(of: float, change: Change) -> str:
    """Return a figure with its unit."""
    if change.unit == "count":
        return formatting.significant(of) if of % 1 else f"{of:,.0f}"
    return value(of, change.unit)


def delta(change: Change) -> str:
    """Return the change of a figure, with its sign."""
    difference = change.delta
    if not difference:
        return "0"
    sign = "+" if difference > 0 else MINUS
    if change.unit == "share":
        return _points(abs(difference) * 100, sign)
    return sign + amount(abs(difference), change)


def _points(size: float, sign: str) -> str:
    if size < LEAST_POINTS:
        return f"< {LEAST_POINTS} points"
    return f"{sign}{formatting.significant(size)} points"


def in_percent(change: Change) -> str:
    """Return the change of a figure in percent; empty where it was zero before."""
    if change.share is None or not change.delta:
        return ""
    size = abs(change.share)
    text = "< 0.1 %" if size < 0.001 else formatting.share(size)
    return ("+" if change.share > 0 else MINUS) + text


def is_significant(change: Change) -> bool:
    """Check whether a change is statistically significant."""
    return change.verdict in {"more", "less"}


def significance(change: Change) -> str:
    """Return the significance of a change as text."""
    if change.verdict == "untested":
        return "not enough steps to compare"
    chance = "" if change.p is None else f" ({_p(change.p)})"
    return f"{'' if is_significant(change) else 'not '}statistically significant{chance}"


def interval(comparison: Comparison) -> str:
    """Return the confidence interval of the step's difference; empty where there is none."""
    if comparison.step_interval_ns is None or not comparison.step.delta:
        return ""
    low, high = (_signed(bound) for bound in comparison.step_interval_ns)
    return f"95 % confidence interval of the difference: {low} to {high}"


def _signed(ns: float) -> str:
    sign = "+" if ns > 0 else MINUS if ns < 0 else ""
    return sign + formatting.duration(abs(ns))


COMPARABILITY: dict[Comparable, str] = {
    "comparable": "",
    "with-care": "Comparable with care",
    "not-comparable": "Not comparable",
}


def is_comparable(comparison: Comparison) -> bool:
    """Check whether changes of the step may be called better or worse."""
    return comparison.comparability.level != "not-comparable"


def comparability(comparison: Comparison) -> tuple[str, tuple[str, ...]]:
    """Return the heading of a notice and its sentences; both empty for comparable sides."""
    of = comparison.comparability
    return COMPARABILITY[of.level], (*of.reasons, *of.cautions)


def step_significance(comparison: Comparison) -> str:
    """Return the significance of the step's change, or the number of steps that are missing."""
    steps = min(comparison.before.step_count, comparison.after.step_count)
    text = significance(comparison.step)
    is_short = comparison.step.verdict == "untested" and steps < LEAST_STEPS
    return f"{text} (needs {LEAST_STEPS}, has {steps})" if is_short else text


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def setting(of: SettingChange) -> str:
    """Return a recorded setting that differs: `DataLoader, Workers: 0 → 4`."""
    return f"{of.label}: {of.before} {ARROW} {of.after}"


def side(of: Side) -> str:
    """Return the traces of a side, and the duration of its steps."""
    parts = [formatting.count(of.recording_count, "trace")]
    if of.worker_count > 1:
        parts.append(formatting.count(of.worker_count, "worker"))
    mean = formatting.duration(of.mean_step_ns)
    if not of.step_count:
        return ", ".join([*parts, f"no steps, {mean} in total"])
    steps = f"{formatting.count(of.step_count, 'step')} of {mean}"
    if of.step_count == 1:
        return ", ".join([*parts, steps])
    spread = formatting.duration(of.standard_deviation_ns)
    middle = formatting.duration(of.median_step_ns)
    return ", ".join([*parts, f"{steps} ± {spread}", f"median {middle}"])


def headline(comparison: Comparison) -> str:
    """Return the change of the step in a sentence."""
    step, before = comparison.step, comparison.before
    subject = "The step" if before.step_count else "The trace"
    if not step.delta:
        return f"{subject} takes as long as before: {amount(step.before, step)}."
    longer = "more" if step.delta > 0 else "less"
    change = formatting.duration(abs(step.delta))
    values = f"{amount(step.before, step)} {ARROW} {amount(step.after, step)}"
    if not is_comparable(comparison):
        return f"{subject}: {values}, not comparable."
    return (
        f"{subject} takes {change} {longer}: {values} ({in_percent(step)}), {significance(step)}."
    )


def parts(of: Sequence[Part]) -> list[Part]:
    """Return the parts that take time on either side."""
    return [part for part in of if part.change.before or part.change.after]


def row_name(row: Row) -> str:
    """Return a row's name; shortened where it is a kernel's."""
    if row.kind == "rest":
        return f"the rest: {formatting.count(row.summed_count, 'row')} below 0.1 % of the step"
    return plain(short(row.name) if row.kind == "kernel" else row.name)


def status(row: Row, comparison: Comparison) -> str:
    """Return the label of a row's status; neutral where the sides are not comparable."""
    return (STATUS if is_comparable(comparison) else NEUTRAL)[row.status]


def advice_status(change: AdviceChange, comparison: Comparison) -> str:
    """Return the label of a finding's status; its side where the sides are not comparable."""
    return (ADVICE if is_comparable(comparison) else ADVICE_OF_SIDES)[change.status]


def row_detail(row: Row) -> str:
    """Return a row's module, operator and shapes."""
    if row.kind == "rest":
        return ""
    if row.summed_count > 1:
        return f"sum of {row.summed_count} shapes and modules below 0.1 % of the step"
    details = [
        f"in {row.module}" if row.module else "",
        f"by {row.operator}" if row.operator else "",
    ]
    if row.shapes_before != row.shapes_after and row.shapes_before and row.shapes_after:
        details.append(f"{_shapes(row.shapes_before)} {ARROW} {_shapes(row.shapes_after)}")
    else:
        details.append(_shapes(row.shapes_before or row.shapes_after))
    return plain(", ".join(filter(None, details)))


def _shapes(shapes: Sequence[str]) -> str:
    return f"{shapes[0]} and others" if len(shapes) > 1 else "".join(shapes)


def main_change(row: Row) -> tuple[str, Change]:
    """Return `host` or `device`, and the more significant change of time there."""
    has_device = bool(row.device.before or row.device.after)
    is_host = not has_device or (is_significant(row.host) and not is_significant(row.device))
    return ("host", row.host) if is_host else ("device", row.device)


def changed_rows(rows: Sequence[Row], most: int) -> tuple[list[Row], int]:
    """Return at most `most` rows that changed, and the number of the others."""
    changed = [row for row in rows if row.status in CHANGED]
    return changed[:most], max(0, len(changed) - most)


def advice(change: AdviceChange) -> str:
    """Return the estimated saving of a finding before and after."""
    before, after = (
        _range(change.low_before_ns, change.high_before_ns),
        _range(change.low_after_ns, change.high_after_ns),
    )
    if change.status == "not-checked":
        return sentences(f"not checked after: {change.reason}")
    if before and after:
        return f"estimated saving {before} per step, now {after}"
    if before:
        return f"estimated saving {before} per step"
    return f"estimated saving {after} per step" if after else ""


def _range(low_ns: int, high_ns: int) -> str:
    if not high_ns:
        return ""
    high = formatting.duration(high_ns)
    return f"{formatting.duration(low_ns)} to {high}" if 0 < low_ns < high_ns else high


def followed_savings(savings: Sequence[Saving]) -> list[Saving]:
    """Return the savings with an estimate."""
    return [saving for saving in savings if saving.predicted_high_ns > 0]


def saving_name(saving: Saving) -> str:
    """Return the trace of a saving."""
    return plain(f"{saving.worker}, span {saving.span}") if saving.span else "together"


def predicted(saving: Saving) -> str:
    """Return the estimated saving of the followed advice per step."""
    return _range(saving.predicted_low_ns, saving.predicted_high_ns)


def realised(saved_ns: int) -> str:
    """Return the time by which the step became shorter."""
    return f"{MINUS if saved_ns < 0 else ''}{formatting.duration(abs(saved_ns))}"
