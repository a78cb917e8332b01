"""Cost of recording one event, which `base/recording_costs.py` holds: `make overhead`.

Each of twenty small trainings runs with and without the profiler, in turns, with each set of
options. Process time is measured, also by the recorder, so that other load counts little. The costs
per event, and the fraction of the whole step, are those that explain the differences best: least
squares, none below 0, each difference weighted by the inverse root of its step. Then each training
is predicted from the costs that the other nineteen give. The recorder's figure for the steps in
which the schedule waits is compared with steps without any profiler before and after.
"""

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile, schedule

from benchmarks.small_trainings import TRAININGS, Step
from stepscope import ingest
from stepscope.base import recording_costs
from stepscope.dialects import Kind
from stepscope.model.arrays import Floats, Ints
from stepscope.model.trace import trace_from_columns
from stepscope.recording import TraceHandler, trace_handler
from stepscope.recording.step_times import StepTimes

OPTIONS: Mapping[str, Mapping[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "stacks": {"with_stack": True},
    "all": dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_modules"), True),
}
COSTS = {
    "an operator or annotation": recording_costs.OPERATOR,
    "more with shapes": recording_costs.OPERATOR_SHAPES,
    "more with stacks": recording_costs.OPERATOR_STACKS,
    "a Python call": recording_costs.PYTHON_CALL,
    "an allocation or release": recording_costs.MEMORY,
}
SLOWDOWN = "of a recorded step, in percent"
TURNS = 6
WARM_STEPS = 30
WAIT, ACTIVE = 12, 6
NEAR = 0.1
ROUNDS = 5_000
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Medians of one training with one set of options; times of a step."""

    training: str
    options: str
    events: tuple[float, ...]
    """Recorded events per step, in the order of `COSTS`."""
    plain_ns: float
    """Process time without a profiler."""
    recorded_ns: float
    measured_share: float
    """The recorder's time of unrecorded steps, over that without any profiler, less 1."""

    @property
    def amounts(self) -> tuple[float, ...]:
        """The events, and the whole step: what has a cost."""
        return (*self.events, self.recorded_ns)


def process_ns(step: Step) -> int:
    """Return the process time of a step."""
    start = time.process_time_ns()
    step()
    return time.process_time_ns() - start


def recorded_steps(step: Step, handler: TraceHandler, options: Mapping[str, Any]) -> list[int]:
    """Return the process time of each recorded step."""
    steps = schedule(wait=WAIT, warmup=2, active=ACTIVE, repeat=1)
    taken = []
    with profile(
        activities=[ProfilerActivity.CPU], schedule=steps, on_trace_ready=handler, **options
    ) as profiler:
        for _ in range(WAIT + 2 + ACTIVE):
            taken.append(process_ns(step))
            profiler.step()
    return taken[-ACTIVE:]


def events_of(path: Path, options: Mapping[str, bool]) -> tuple[float, ...]:
    """Return the recorded events per step, in the order of `COSTS`."""
    trace = trace_from_columns(ingest.read(str(path)), worker="training")
    source, steps = trace.source, trace.steps

    def per_step(*kinds: Kind) -> float:
        start_ns: Ints = source.columns.start_ns[source.rows(*kinds)]
        first_ns, last_ns = steps["start_ns"].min(), steps["end_ns"].max()
        return float(((start_ns >= first_ns) & (start_ns < last_ns)).sum() / len(steps))

    operators = per_step(Kind.OPERATOR)
    return (
        operators + per_step(Kind.ANNOTATION),
        operators * options.get("record_shapes", False),
        operators * options.get("with_stack", False),
        per_step(Kind.PYTHON_CALL),
        per_step(Kind.MEMORY),
    )


def recordings_of(training: str, folder: Path) -> list[Recording]:
    """Measure one training with all options, in turns."""
    step = TRAININGS[training]()
    for _ in range(WARM_STEPS):
        step()
    plain: list[float] = []
    ratios: dict[str, list[float]] = {name: [] for name in OPTIONS}
    shares: dict[str, list[float]] = {name: [] for name in OPTIONS}
    events: dict[str, tuple[float, ...]] = {}
    for _ in range(TURNS):
        for name, options in OPTIONS.items():
            handler = trace_handler(folder, is_searched=False)
            handler.step_times = StepTimes(clock_ns=time.process_time_ns)
            around = [process_ns(step) for _ in range(WAIT)]
            recorded = recorded_steps(step, handler, options)
            around += [process_ns(step) for _ in range(WAIT)]
            plain.append(statistics.median(around))
            ratios[name].append(statistics.median(recorded) / plain[-1])
            shares[name].append(handler.step_times.summary["median_ns"] / plain[-1] - 1)
            events[name] = events_of(handler.saved[-1], options)
            handler.saved[-1].unlink()
    return [
        Recording(
            training=training,
            options=name,
            events=events[name],
            plain_ns=statistics.median(plain),
            recorded_ns=statistics.median(plain) * statistics.median(ratios[name]),
            measured_share=statistics.median(shares[name]),
        )
        for name in OPTIONS
    ]


def fitted(recordings: Sequence[Recording]) -> Floats:
    """Return the costs of events, ns, in the order of `COSTS`, and the fraction of the step.

    By coordinate descent.
    """
    weight = np.array([recording.plain_ns**-0.5 for recording in recordings])
    amounts = np.array([recording.amounts for recording in recordings]) * weight[:, None]
    more = np.array([recording.recorded_ns - recording.plain_ns for recording in recordings])
    products, target = amounts.T @ amounts, amounts.T @ (more * weight)
    costs = np.zeros(len(COSTS) + 1)
    for _ in range(ROUNDS):
        for index, square in enumerate(np.diag(products)):
            if square:
                step = (target[index] - products[index] @ costs) / square
                costs[index] = max(0.0, costs[index] + step)
    return costs


def errors(recordings: Sequence[Recording]) -> list[float]:
    """Return each predicted step over the one without a profiler, less 1.

    By costs from the other trainings.
    """
    result = []
    for training in dict.fromkeys(recording.training for recording in recordings):
        costs = fitted([other for other in recordings if other.training != training])
        result += [
            (one.recorded_ns - np.dot(one.amounts, costs)) / one.plain_ns - 1
            for one in recordings
            if one.training == training
        ]
    return result


def show(recordings: Sequence[Recording]) -> None:
    """Print costs and predictions."""
    table = Table("a recorded event", "measured, ns", "in recording_costs.py, ns")
    *costs, part = fitted(recordings)
    for (name, cost), now in zip(COSTS.items(), costs, strict=True):
        table.add_row(name, f"{now:.0f}", f"{cost.ns:.0f}")
    slowdown = recording_costs.HOST_SLOWDOWN
    table.add_row(SLOWDOWN, f"{100 * part:.0f}", f"{100 * slowdown:.0f}")
    console.print(table)
    table = Table("training", "options", "without, ms", "recorded", "predicted", "the recorder's")
    all_errors = errors(recordings)
    for recording, error in zip(recordings, all_errors, strict=True):
        table.add_row(
            recording.training,
            recording.options,
            f"{recording.plain_ns / 1e6:.2f}",
            f"{recording.recorded_ns / recording.plain_ns - 1:+.1%}",
            f"{error:+.1%}",
            f"{recording.measured_share:+.1%}",
        )
    console.print(table)
    near = sum(abs(error) <= NEAR for error in all_errors)
    typical = statistics.median(abs(error) for error in all_errors)
    console.print(f"{near} of {len(all_errors)} predicted within {NEAR:.0%}; median {typical:.1%}")


def main() -> int:
    """Measure and print; there is no limit."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        show([one for name in TRAININGS for one in recordings_of(name, Path(folder))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
