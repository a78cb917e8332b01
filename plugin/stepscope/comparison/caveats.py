"""Caveats of a comparison: damage, too few steps, spans that differ."""

from collections.abc import Iterator

import numpy as np

from stepscope.base.formatting import duration
from stepscope.comparison.side import SideSamples, batched
from stepscope.comparison.significance import LEAST_STEPS, LEVEL, permutation_test


def warnings(before: SideSamples, after: SideSamples) -> Iterator[str]:
    """Yield caveats as sentences."""
    yield from _of_steps(before, after)
    yield from _of_damage(before, after)
    for when, side in (("before", before), ("after", after)):
        if apart := _spans_apart(side):
            yield (
                f"The spans {when} differ by up to {duration(apart)} per step, more than the jitter"
                " of their steps explains: smaller changes are not significant."
            )


def _of_steps(before: SideSamples, after: SideSamples) -> Iterator[str]:
    for when, side in (("before", before), ("after", after)):
        if not side.step_count:
            yield f"There are no steps {when}: the whole trace counts as one step, without a test."
        elif side.step_count < LEAST_STEPS:
            yield (
                f"Not enough steps to compare {when} (needs {LEAST_STEPS}, has {side.step_count})."
            )


def _of_damage(before: SideSamples, after: SideSamples) -> Iterator[str]:
    for when, side in (("before", before), ("after", after)):
        workers = (worker for trace in side.traces for worker in trace.advice.workers)
        items = (item for worker in workers for item in worker.health)
        damage = (item.message for item in items if item.nature == "damage" and item.affects)
        for message in dict.fromkeys(damage):
            yield f"The traces {when} are damaged: {message.rstrip('.')}."


def _spans_apart(side: SideSamples) -> float:
    """Return the difference between a side's spans, if it is statistically significant; else 0."""
    spans = np.unique(side.span)
    steps = side.durations()
    by_span = [steps[side.span == span] for span in spans]
    by_span = [values for values in by_span if len(values) >= LEAST_STEPS]
    if len(by_span) < 2:
        return 0.0
    by_span.sort(key=lambda values: float(values.mean()))
    ends = by_span[0][None, :], by_span[-1][None, :]
    pairs = len(by_span) * (len(by_span) - 1) / 2
    p = float(permutation_test(batched(ends[0]), batched(ends[1]), 1000.0).p[0])
    return float(by_span[-1].mean() - by_span[0].mean()) if p * pairs < LEVEL else 0.0
