"""Comparison of two runs, spans or ranks.

`samples.sample` extracts the data of each trace, `compare` joins traces to sides and returns the
changes. `significance` has the statistical test.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.base.errors import in_one_line
from stepscope.comparison.advice_changes import advice_changes, followed_savings, setting_changes
from stepscope.comparison.caveats import warnings
from stepscope.comparison.comparability import comparability
from stepscope.comparison.device_metrics import figures, idle
from stepscope.comparison.messages import Change, Comparison, Part, Side
from stepscope.comparison.operator_changes import device_rows, operator_rows
from stepscope.comparison.samples import Sample
from stepscope.comparison.selected_steps import NOTE
from stepscope.comparison.side import SideSamples, between_spans, side_samples
from stepscope.comparison.significance import changes, confidence_interval

TEST = (
    "Permutation test of Welch's t over steps, adjusted for all figures of a table (Westfall and"
    " Young's maxT), at 5 %; with three steps against three or four, Welch's t-test with Holm's"
    " correction; with fewer, none. A change must also be larger than the difference between the"
    " spans of one side. The test separates changes from the jitter of steps; differences between"
    " one start of a job and the next show only with several spans or traces on each side."
)

FAILED = (
    "{part} could not be compared, since stepscope failed ({reason}). This is a bug: please report "
    "it with this line."
)
T = TypeVar("T")


def compare(
    name: str,
    before: Sequence[Sample],
    other: str,
    after: Sequence[Sample],
    *,
    are_steps_selected: bool = False,
) -> Comparison:
    """Return the changes from the traces of one side to those of the other.

    With selected steps, results of whole traces are left out: advice, savings, causes of idle time.
    """
    sides = side_samples(name, before), side_samples(other, after)
    comparable = comparability(before, after)
    is_saving_shown = comparable.level != "not-comparable" and not are_steps_selected
    step, waterfall = _waterfall(*sides)
    failures: list[str] = []

    def part(label: str, compute: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        """Return a part of the comparison; a bug in it must not hide the others."""
        try:
            return compute()
        except MemoryError:
            raise
        except Exception as error:
            failures.append(FAILED.format(part=label, reason=in_one_line(error)))
            return ()

    compared = Comparison(
        before=_side(sides[0]),
        after=_side(sides[1]),
        comparability=comparable,
        step=step,
        step_interval_ns=confidence_interval(*(side.durations() for side in sides)),
        waterfall=waterfall,
        idle=part("Idle time", lambda: () if are_steps_selected else idle(*sides)),
        figures=part("Device metrics", lambda: () if are_steps_selected else figures(*sides)),
        operators=part("Operators", lambda: operator_rows(sides)),
        device_work=part("Device work", lambda: device_rows(sides)),
        advice=part("Advice", lambda: () if are_steps_selected else advice_changes(*sides)),
        savings=part("Savings", lambda: followed_savings(*sides) if is_saving_shown else ()),
        settings=part("Settings", lambda: setting_changes(*sides)),
        warnings=(),
    )
    notes = (NOTE,) if are_steps_selected else ()
    caveats = part("Caveats", lambda: tuple(warnings(*sides)))
    return msgspec.structs.replace(compared, warnings=(*notes, *failures, *caveats))


def _side(side: SideSamples) -> Side:
    durations = side.durations()
    mean_ns = round(float(durations.mean()))
    sizes = {trace.batch_size for trace in side.traces}
    batch = sizes.pop() if len(sizes) == 1 else None
    return Side(
        name=side.name,
        recording_count=len(side.traces),
        worker_count=len({trace.worker for trace in side.traces}),
        step_count=side.step_count,
        mean_step_ns=mean_ns,
        median_step_ns=round(float(np.median(durations))),
        standard_deviation_ns=round(float(durations.std())),
        batch_size=batch,
        batch_ns=round(mean_ns / batch) if batch else None,
    )


def _waterfall(before: SideSamples, after: SideSamples) -> tuple[Change, tuple[Part, ...]]:
    """Return the changes of the mean step and its categories, which sum to it in nanoseconds."""
    totals, parts = zip(*(side.whole_parts() for side in (before, after)), strict=True)
    times = [side.durations()[None, :] for side in (before, after)]
    step = _changes((before, after), times, ((totals[0], totals[1]),))[0]
    rows = [side.parts() for side in (before, after)]
    tested = _changes((before, after), rows, tuple(zip(*parts, strict=True)))
    described = zip(CATEGORIES.items(), tested, strict=True)
    return step, tuple(
        Part(id=name, label=label, meaning=meaning, change=change)
        for (name, (label, meaning)), change in described
    )


def _changes(
    sides: tuple[SideSamples, SideSamples],
    values: Sequence[np.ndarray],
    whole: Sequence[tuple[int, int]],
) -> list[Change]:
    """Return tested changes of figures, with their means in whole nanoseconds."""
    apart = np.maximum(*(between_spans(*pair) for pair in zip(sides, values, strict=True)))
    tested = changes(values[0], values[1], apart, "ns")
    return [
        msgspec.structs.replace(change, before=first, after=second)
        for change, (first, second) in zip(tested, whole, strict=True)
    ]
