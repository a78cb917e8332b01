"""What `compare_text` and `compare_markdown` both say: changes with their sign, names, verdicts."""

from collections.abc import Sequence

from stepscope.analyses.core.kernel_names import short
from stepscope.base import formatting
from stepscope.comparison.messages import (
    AdviceChange,
    AdviceStatus,
    Change,
    Comparison,
    Part,
    Row,
    Saving,
    SettingChange,
    Side,
    Status,
)
from stepscope.render.phrases import plain, sentences, value

MINUS = "\N{MINUS SIGN}"
ARROW = "\N{RIGHTWARDS ARROW}"
NOISE = "·"
"""Marks a change that is not told from noise."""
STATUS: dict[Status, str] = {
    "added": "added",
    "gone": "gone",
    "slower": "slower",
    "faster": "faster",
    "other-calls": "other calls",
    "same": "same",
    "untested": "untested",
}
ADVICE: dict[AdviceStatus, str] = {
    "fixed": "FIXED",
    "new": "NEW",
    "worse": "WORSE",
    "better": "BETTER",
    "still": "STILL THERE",
    "not-checked": "NOT CHECKED",
}
WORTH_TELLING = ("added", "gone", "slower", "faster", "other-calls")
LEAST_POINTS = 0.01
"""Of percentage points: a change that no reader cares for, and no recording can tell."""


def amount(of: float, change: Change) -> str:
    """Return a figure with its unit."""
    if change.unit == "count":
        return formatting.significant(of) if of % 1 else f"{of:,.0f}"
    return value(of, change.unit)


def delta(change: Change) -> str:
    """Return by how much a figure changed, with its sign."""
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
    """Return by which share of what it was a figure changed; empty where it was nothing."""
    if change.share is None or not change.delta:
        return ""
    size = abs(change.share)
    text = "< 0.1 %" if size < 0.001 else formatting.share(size)
    return ("+" if change.share > 0 else MINUS) + text


def is_real(change: Change) -> bool:
    """Tell whether a change is told from noise."""
    return change.verdict in {"more", "less"}


def sureness(change: Change) -> str:
    """Say whether a change is told from noise."""
    if change.verdict == "untested":
        return "too few steps to tell it from noise"
    chance = "" if change.p is None else f" ({_p(change.p)})"
    return f"{'told' if is_real(change) else 'not told'} from noise{chance}"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def setting(of: SettingChange) -> str:
    """Say which recorded setting differs: `DataLoader, Workers: 0 → 4`."""
    return f"{of.label}: {of.before} {ARROW} {of.after}"


def side(of: Side) -> str:
    """Say what a side is made of, and how long its steps are."""
    parts = [formatting.count(of.recording_count, "recording")]
    if of.worker_count > 1:
        parts.append(formatting.count(of.worker_count, "worker"))
    mean = formatting.duration(of.mean_step_ns)
    if not of.step_count:
        return ", ".join([*parts, f"no steps, {mean} in all"])
    steps = f"{formatting.count(of.step_count, 'step')} of {mean}"
    if of.step_count == 1:
        return ", ".join([*parts, steps])
    spread = formatting.duration(of.standard_deviation_ns)
    middle = formatting.duration(of.median_step_ns)
    return ", ".join([*parts, f"{steps} ± {spread}", f"median {middle}"])


def headline(comparison: Comparison) -> str:
    """Say what became of the step."""
    step, before = comparison.step, comparison.before
    what = "The step" if before.step_count else "The recording"
    if not step.delta:
        return f"{what} takes as long as before: {amount(step.before, step)}."
    longer = "more" if step.delta > 0 else "less"
    change = formatting.duration(abs(step.delta))
    return (
        f"{what} takes {change} {longer}: {amount(step.before, step)} {ARROW} "
        f"{amount(step.after, step)} ({in_percent(step)}), {sureness(step)}."
    )


def parts(of: Sequence[Part]) -> list[Part]:
    """Return the parts that are there on either side."""
    return [part for part in of if part.change.before or part.change.after]


def row_name(row: Row) -> str:
    """Return a row's name; kernels' in short."""
    return plain(short(row.name) if row.kind == "kernel" else row.name)


def row_detail(row: Row) -> str:
    """Say where it is, and what its shapes are or were."""
    found = [f"in {row.module}" if row.module else "", f"by {row.operator}" if row.operator else ""]
    if row.shapes_before != row.shapes_after and row.shapes_before and row.shapes_after:
        found.append(f"{_shapes(row.shapes_before)} {ARROW} {_shapes(row.shapes_after)}")
    else:
        found.append(_shapes(row.shapes_before or row.shapes_after))
    return plain(", ".join(filter(None, found)))


def _shapes(shapes: Sequence[str]) -> str:
    return f"{shapes[0]} and others" if len(shapes) > 1 else "".join(shapes)


def main_change(row: Row) -> tuple[str, Change]:
    """Return the time that says most about a row, and where that was spent."""
    has_device = bool(row.device.before or row.device.after)
    is_host = not has_device or (is_real(row.host) and not is_real(row.device))
    return ("host", row.host) if is_host else ("device", row.device)


def worth_telling(rows: Sequence[Row], most: int) -> tuple[list[Row], int]:
    """Return the rows that changed, at most so many, and how many more there are."""
    changed = [row for row in rows if row.status in WORTH_TELLING]
    return changed[:most], max(0, len(changed) - most)


def advice(change: AdviceChange) -> str:
    """Say what a piece of advice promised, and what is left of it."""
    before, after = (
        _range(change.low_before_ns, change.high_before_ns),
        _range(change.low_after_ns, change.high_after_ns),
    )
    if change.status == "not-checked":
        return sentences(f"not checked after: {change.reason}")
    if before and after:
        return f"promised {before} a step, now {after}"
    if before:
        return f"promised {before} a step"
    return f"promises {after} a step" if after else ""


def _range(low_ns: int, high_ns: int) -> str:
    if not high_ns:
        return ""
    high = formatting.duration(high_ns)
    return f"{formatting.duration(low_ns)} to {high}" if 0 < low_ns < high_ns else high


def followed(savings: Sequence[Saving]) -> list[Saving]:
    """Return the savings that advice had promised, of which something can have come."""
    return [saving for saving in savings if saving.predicted_high_ns > 0]


def saving_name(saving: Saving) -> str:
    """Name what a saving is of."""
    return plain(f"{saving.worker}, span {saving.span}") if saving.span else "together"


def predicted(saving: Saving) -> str:
    """Return what the advice that was followed promised a step."""
    return _range(saving.predicted_low_ns, saving.predicted_high_ns)


def realised(saved_ns: int) -> str:
    """Return what a step won, or lost."""
    return f"{MINUS if saved_ns < 0 else ''}{formatting.duration(abs(saved_ns))}"
