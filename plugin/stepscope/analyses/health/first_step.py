"""A first step that differs from the others: start-up, or peers that were late."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.analyses.health._check import UNLIKELY_SHARE, by_share, examples, on_device
from stepscope.analyses.settings.record_command import command, is_of_command
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.formatting import duration, share, significant
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace

LEAST_STEPS = 3
LONGER = 1.3
"""Ratio to the median of the others: torch-tb-profiler's samples reach 1.44 and 1.30."""
DOUBTFUL_SHARE = 0.2
"""Fraction of the window from which mostly the start-up is measured."""
FAR_LONGER = 5
"""Ratio to the longest collective of all later steps: a peer had not begun yet."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report a first step that is longer than the others, or waits for a peer's profiler."""
    yield from _slow_step(trace)
    yield from _waiting_collective(trace)


def _slow_step(trace: Trace) -> Iterator[HealthItem]:
    steps = step_breakdown(trace)
    if steps.step_count < LEAST_STEPS:
        return
    first, median = int(steps.duration_ns[0]), float(np.median(steps.duration_ns[1:]))
    if not median or first < LONGER * median:
        return
    excess = (first - median) / int(steps.duration_ns.sum())
    if excess < UNLIKELY_SHARE:
        return
    event = trace.steps["event"].to_numpy()[:1]
    yield HealthItem(
        kind="first-step-skew",
        severity=by_share(excess, DOUBTFUL_SHARE),
        count=1,
        of_count=steps.step_count,
        message=(
            f"the first step lasts {duration(first)}, {significant(first / median)} times the "
            f"median of the others ({duration(median)}): something was still starting up"
        ),
        action="it counts like the other steps",
        remedy=_warm_up(trace),
        examples=examples(trace, event, lambda _: f"lasts {duration(first)}"),
    )


def _warm_up(trace: Trace) -> str:
    """Return the remedy: two more steps of warm-up than were recorded."""
    warmup = max(2, (recorded_settings(trace).profiler.schedule.warmup or 0) + 2)
    if is_of_command(trace):
        return f"Warm up for longer: {command(f'--warmup {warmup}')}"
    return f"Warm up for longer: torch.profiler.schedule(wait=1, warmup={warmup}, active=3)."


def _waiting_collective(trace: Trace) -> Iterator[HealthItem]:
    frame, span = trace.device_events, window(trace)
    rows = np.flatnonzero(frame["is_collective"].to_numpy())
    if len(rows) < 2:
        return
    start, length = (frame[name].to_numpy()[rows] for name in ("start_ns", "duration_ns"))
    longest = int(length.argmax())
    others = np.delete(length, longest)
    lost = int(length[longest]) / max(1, span.reference_ns)
    steps = trace.steps["end_ns"].to_numpy()
    first_end_ns = int(steps[0]) if len(steps) else int(start[0]) + 1
    if (
        lost < DOUBTFUL_SHARE
        or length[longest] < FAR_LONGER * others.max()
        or start[longest] >= first_end_ns
    ):
        return
    row = int(rows[longest])
    yield HealthItem(
        kind="collective-start-skew",
        severity="warning",
        count=1,
        of_count=len(rows),
        message=(
            f"one collective of the first step lasts {duration(int(length[longest]))}, "
            f"{share(lost)} of the window; no other lasts longer than "
            f"{duration(int(others.max()))}: another rank had not begun yet"
        ),
        action="it counts as communication",
        remedy=f"Let all ranks begin together (torch.distributed.barrier()). {_warm_up(trace)}",
        examples=examples(trace, frame["event"].to_numpy()[[row]], lambda _: on_device(trace, row)),
    )


DAMAGES = {"first-step-skew": {"steps"}, "collective-start-skew": {"steps", "device times"}}
