"""Caveats of a comparison: other differences between the sides, damage, too few steps."""

from collections.abc import Iterator

import numpy as np

from stepscope.base.formatting import capitalized, count, duration
from stepscope.comparison.side import SideSamples, batched
from stepscope.comparison.significance import LEAST_STEPS, LEVEL, permutation_test

PROFILER_FLAGS = ("record_shapes", "with_stack", "profile_memory")


def warnings(before: SideSamples, after: SideSamples) -> Iterator[str]:
    """Yield caveats as sentences."""
    yield from _of_steps(before, after)
    yield from _of_batches(before, after)
    yield from _of_conditions(before, after)
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
    ranks = [len({trace.worker for trace in side.traces}) for side in (before, after)]
    if ranks[0] != ranks[1]:
        was, now = (count(number, "worker") for number in ranks)
        yield f"There is {was} before and {now} after."


def _of_batches(before: SideSamples, after: SideSamples) -> Iterator[str]:
    sizes = [_joined({str(trace.batch_size) for trace in side.traces}) for side in (before, after)]
    if sizes[0] != sizes[1] and "None" not in sizes:
        per_sample = [
            duration(float(side.durations().mean()) / int(size)) if size.isdecimal() else "unknown"
            for side, size in zip((before, after), sizes, strict=True)
        ]
        yield (
            f"The batch size was {sizes[0]} and is {sizes[1]}: compare the time per sample,"
            f" {per_sample[0]} before and {per_sample[1]} after, not the step."
        )


def _of_conditions(before: SideSamples, after: SideSamples) -> Iterator[str]:
    names = dict.fromkeys(
        name for side in (before, after) for trace in side.traces for name in trace.conditions
    )
    for name in names:
        was, now = (
            _joined({trace.conditions.get(name, "") for trace in side.traces})
            for side in (before, after)
        )
        if was != now and was and now:
            cost = " This changes the profiler's overhead." if name in PROFILER_FLAGS else ""
            text = f"{name} was {was} and is {now}.{cost}"
            yield text if name in PROFILER_FLAGS else capitalized(text)


def _of_damage(before: SideSamples, after: SideSamples) -> Iterator[str]:
    for when, side in (("before", before), ("after", after)):
        workers = (worker for trace in side.traces for worker in trace.advice.workers)
        items = (item for worker in workers for item in worker.health)
        damage = (item.message for item in items if item.nature == "damage" and item.affects)
        for message in dict.fromkeys(damage):
            yield f"The traces {when} are damaged: {message.rstrip('.')}."


def _joined(values: set[str]) -> str:
    return " or ".join(sorted(values))


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
