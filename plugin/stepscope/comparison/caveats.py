"""What else differs between two sides, or speaks against comparing them: sentences."""

from collections.abc import Iterator

import numpy as np

from stepscope.base.formatting import count, duration
from stepscope.comparison.side import Together, batched
from stepscope.comparison.significance import LEAST_STEPS, LEVEL, judged

PROFILER_FLAGS = ("record_shapes", "with_stack", "profile_memory")


def warnings(before: Together, after: Together) -> tuple[str, ...]:
    """Return what a reader should know before believing the changes."""
    return tuple(_warnings(before, after))


def _warnings(before: Together, after: Together) -> Iterator[str]:
    yield from _of_steps(before, after)
    yield from _of_batches(before, after)
    yield from _of_conditions(before, after)
    yield from _of_damage(before, after)
    for which, side in (("before", before), ("after", after)):
        if apart := _spans_apart(side):
            yield (
                f"The spans {which} differ among themselves by up to {duration(apart)} a step,"
                " more than their steps' jitter explains: smaller changes count as noise."
            )


def _of_steps(before: Together, after: Together) -> Iterator[str]:
    for which, side in (("before", before), ("after", after)):
        if not side.step_count:
            yield f"There are no steps {which}: the whole recording counts as one, untested."
        elif side.step_count < LEAST_STEPS:
            steps = count(side.step_count, "step")
            yield f"There is only {steps} {which}: {LEAST_STEPS} are needed to tell noise."
    ranks = [len({each.worker for each in side.recordings}) for side in (before, after)]
    if ranks[0] != ranks[1]:
        was, now = (count(number, "worker") for number in ranks)
        yield f"There is {was} before and {now} after."


def _of_batches(before: Together, after: Together) -> Iterator[str]:
    sizes = [_one({str(each.batch_size) for each in side.recordings}) for side in (before, after)]
    if sizes[0] != sizes[1] and "None" not in sizes:
        per_sample = [
            duration(float(side.durations().mean()) / int(size)) if size.isdecimal() else "unknown"
            for side, size in zip((before, after), sizes, strict=True)
        ]
        yield (
            f"The batch size was {sizes[0]} and is {sizes[1]}: compare the time a sample,"
            f" {per_sample[0]} before and {per_sample[1]} after, not the step's."
        )


def _of_conditions(before: Together, after: Together) -> Iterator[str]:
    names = dict.fromkeys(
        name for side in (before, after) for each in side.recordings for name in each.conditions
    )
    for name in names:
        was, now = (
            _one({each.conditions.get(name, "") for each in side.recordings})
            for side in (before, after)
        )
        if was != now and was and now:
            cost = " The profiler itself then costs other time." if name in PROFILER_FLAGS else ""
            text = f"{name} was {was} and is {now}.{cost}"
            yield text if name in PROFILER_FLAGS else text[:1].upper() + text[1:]


def _of_damage(before: Together, after: Together) -> Iterator[str]:
    for which, side in (("before", before), ("after", after)):
        workers = (worker for each in side.recordings for worker in each.advice.workers)
        items = (item for worker in workers for item in worker.health)
        damage = (item.message for item in items if item.nature == "damage" and item.affects)
        for message in dict.fromkeys(damage):
            yield f"What was recorded {which} is damaged: {message.rstrip('.')}."


def _one(values: set[str]) -> str:
    return " or ".join(sorted(values))


def _spans_apart(side: Together) -> float:
    """Return how far a side's spans lie apart, where jitter does not explain it; else 0."""
    spans = np.unique(side.span)
    steps = side.durations()
    own = [steps[side.span == each] for each in spans]
    own = [each for each in own if len(each) >= LEAST_STEPS]
    if len(own) < 2:
        return 0.0
    own.sort(key=lambda each: float(each.mean()))
    ends = own[0][None, :], own[-1][None, :]
    pairs = len(own) * (len(own) - 1) / 2
    p = float(judged(batched(ends[0]), batched(ends[1]), 1000.0).p[0])
    return float(own[-1].mean() - own[0].mean()) if p * pairs < LEVEL else 0.0
