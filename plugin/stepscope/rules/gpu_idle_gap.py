"""Long stalls of the device while the host does something else."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses import requirements
from stepscope.analyses.device_activity import DeviceActivity
from stepscope.analyses.host_activity import activity_during
from stepscope.analyses.idle_ledger import idle_ledger
from stepscope.analyses.window import window
from stepscope.intervals import Intervals
from stepscope.quantities import count, duration, share
from stepscope.report import EventReference, Evidence, Fix, Link
from stepscope.rules import Claim, Finding, Rule
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which gaps are long."""

    least_ns: int = 1_000_000
    """Below 1 ms a gap is dispatch, which `launch-bound` answers for."""
    least_step_share: float = 0.05
    """Of the median step. Nsight's fixed 500 ms sees nothing in training."""
    unknown_share: float = 0.05
    """Idle time without a recorded launch from which the causes are in doubt."""
    shown_count: int = 10


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report the idle time of long gaps in which the host was late for no device's sake."""
    device = requirements.main(trace)
    requirements.reliable_timeline(trace)
    gaps, stalled = _long_gaps(trace, device, options)
    if not len(stalled):
        return
    within = window(trace)
    total_ns = intervals.duration_ns(stalled)
    doubtful = _unknown(trace, device) > options.unknown_share
    longest = gaps[np.argsort(gaps[:, 0] - gaps[:, 1], kind="stable")[: options.shown_count]]
    events = tuple(_references(trace, longest))
    yield Finding(
        confidence="low" if doubtful else "high",
        message=(
            f"{count(len(gaps), 'stall')} of {trace.dialect.device} {device.device} cost "
            f"{duration(within.per_step(total_ns))}"
            f"{' a step' if within.has_steps else ''} ({share(total_ns / within.duration_ns)}); "
            f"in the longest, {duration(int(longest[0, 1] - longest[0, 0]))}, the host was at: "
            f"{events[0].name}."
        ),
        evidence=(
            Evidence(label="Long stalls", value=len(gaps), unit="count"),
            Evidence(label="Idle time in them", value=total_ns, unit="ns"),
            Evidence(
                label="Longest stall",
                value=int(longest[0, 1] - longest[0, 0]),
                unit="ns",
                link=Link(view="overview", start_ns=int(longest[0, 0]), end_ns=int(longest[0, 1])),
            ),
        ),
        events=events,
        claim=Claim(
            intervals=stalled,
            low=0.5,
            method="The idle time of these stalls; at least half of it if the work is overlapped.",
        ),
    )


def _long_gaps(
    trace: Trace, device: DeviceActivity, options: Options
) -> tuple[Intervals, Intervals]:
    """Return the long gaps that hold stalls, and the stalled part of them."""
    ledger = idle_ledger(trace)[device.device]
    least = options.least_ns
    if len(trace.steps):
        median = float(np.median(trace.steps["duration_ns"].to_numpy()))
        least = max(least, round(options.least_step_share * median))
    long_gaps = ledger.gaps[ledger.gaps[:, 1] - ledger.gaps[:, 0] >= least]
    late = intervals.merged(ledger.times["host-stall"], ledger.times["tail"])
    stalled = intervals.intersection(long_gaps, late)
    held: NDArray[np.int64] = intervals.covered_ns(stalled, long_gaps[:, 0], long_gaps[:, 1])
    return long_gaps[held > 0], stalled


def _unknown(trace: Trace, device: DeviceActivity) -> float:
    times = idle_ledger(trace)[device.device].idle_ns
    return times["no-record"] / max(1, window(trace).device_duration_ns)


def _references(trace: Trace, gaps: Intervals) -> Iterator[EventReference]:
    for start, end in gaps.tolist():
        yield EventReference(
            name=activity_during(trace, start, end),
            track="host",
            start_ns=start,
            duration_ns=end - start,
            detail="what the host did while the device stood still",
        )


RULE = Rule(
    id="gpu-idle-gap",
    title="Long GPU stalls",
    category="utilization",
    why=(
        "For a millisecond or more the host gave the device nothing to do: preprocessing, file "
        "access, logging or NumPy ran in between."
    ),
    fix=Fix(
        summary="Move that work off the critical path, or let it overlap the previous step.",
        code=(
            "# prepare the next batch while the device computes this one\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(1) as pool:\n"
            "    upcoming = pool.submit(prepare, next(batches))\n"
            "    for batch in batches:\n"
            "        ready, upcoming = upcoming.result(), pool.submit(prepare, batch)\n"
            "        train_step(ready)\n"
            "    train_step(upcoming.result())"
        ),
        verify="The stalls of 1 ms and more are gone from the idle causes in Overview.",
        caveats=(
            "Where stacks were not recorded, the source line is unknown: use with_stack=True.",
        ),
    ),
    options=Options(),
    check=check,
    priority=60,
    links=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    origin="Nsight Systems gpu_gaps; HTA idle time breakdown (host wait)",
)
