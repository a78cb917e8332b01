"""What is different between two runs, spans or ranks: one comparison, several answers.

`sampling.sample` takes from each recording what is needed, `compare` puts recordings together as
sides and says what changed. `noise` holds the test that tells changes from chance.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.comparison.advice_changes import advice_changes, savings
from stepscope.comparison.caveats import warnings
from stepscope.comparison.device_metrics import figures, idle
from stepscope.comparison.messages import Change, Comparison, Part, Side
from stepscope.comparison.metric_changes import changes
from stepscope.comparison.operator_changes import device_rows, operator_rows
from stepscope.comparison.samples import Sample
from stepscope.comparison.setting_changes import setting_changes
from stepscope.comparison.side import Together, between_spans, together

TEST = (
    "Permutation test of Welch's t over steps, adjusted for all figures of a table (Westfall and"
    " Young's maxT), at 5 %; with three steps beside three or four, Welch's t-test with Holm's"
    " correction; with fewer, none. A change must also be larger than the difference between the"
    " spans of one side. It tells change from the steps' own jitter: what differs from one start"
    " of a job to the next shows only where each side has several spans or recordings."
)


def compare(name: str, before: Sequence[Sample], other: str, after: Sequence[Sample]) -> Comparison:
    """Return what changed from the recordings of one side to those of the other."""
    sides = together(name, before), together(other, after)
    step, waterfall = _waterfall(*sides)
    return Comparison(
        before=_side(sides[0]),
        after=_side(sides[1]),
        step=step,
        waterfall=waterfall,
        idle=idle(*sides),
        figures=figures(*sides),
        operators=operator_rows(sides),
        device_work=device_rows(sides),
        advice=advice_changes(*sides),
        savings=savings(*sides),
        warnings=warnings(*sides),
        settings=setting_changes(*sides),
    )


def _side(side: Together) -> Side:
    durations = side.durations()
    mean_ns = round(float(durations.mean()))
    sizes = {each.batch_size for each in side.recordings}
    batch = sizes.pop() if len(sizes) == 1 else None
    return Side(
        name=side.name,
        recording_count=len(side.recordings),
        worker_count=len({each.worker for each in side.recordings}),
        step_count=side.step_count,
        mean_step_ns=mean_ns,
        median_step_ns=round(float(np.median(durations))),
        standard_deviation_ns=round(float(durations.std())),
        batch_size=batch,
        batch_ns=round(mean_ns / batch) if batch else None,
    )


def _waterfall(before: Together, after: Together) -> tuple[Change, tuple[Part, ...]]:
    """Return the mean step's change, and its categories', in whole nanoseconds that sum to it."""
    totals, parts = zip(*(side.whole_parts() for side in (before, after)), strict=True)
    times = [side.durations()[None, :] for side in (before, after)]
    step = _changes((before, after), times, ((totals[0], totals[1]),))[0]
    rows = [side.parts() for side in (before, after)]
    each = _changes((before, after), rows, tuple(zip(*parts, strict=True)))
    described = zip(CATEGORIES.items(), each, strict=True)
    return step, tuple(
        Part(id=name, label=label, meaning=meaning, change=change)
        for (name, (label, meaning)), change in described
    )


def _changes(
    sides: tuple[Together, Together],
    values: Sequence[np.ndarray],
    whole: Sequence[tuple[int, int]],
) -> list[Change]:
    """Return tested changes of figures whose means are given in whole nanoseconds."""
    apart = np.maximum(*(between_spans(*each) for each in zip(sides, values, strict=True)))
    found = changes(values[0], values[1], apart, "ns")
    return [
        msgspec.structs.replace(change, before=first, after=second)
        for change, (first, second) in zip(found, whole, strict=True)
    ]
