"""Long stalls of the device while the host does something else."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses import requirements
from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.host.activity import NOTHING, activity_during, call_during
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.steps.window import window
from stepscope.calibration import HALF_TO_ALL
from stepscope.intervals import Intervals
from stepscope.quantities import count, duration, share
from stepscope.report import EventReference, Evidence, Fix, Link
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which stalls are long, and when they are worth a word."""

    least_ns: int = option(
        1_000_000, "Below 1 ms it is dispatch, which `launch-bound` answers for.", origin=""
    )
    least_step_share: float = option(
        0.05,
        "Of the median step: the longest stall, or a step's stalls together. Nsight's fixed 500 ms sees nothing in training.",
        origin="",
    )
    unknown_share: float = option(
        0.05, "Idle time without a recorded launch from which the causes are in doubt.", origin=""
    )
    shown_count: int = option(10, "How many events are named.", origin="", is_threshold=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stalls:
    """Gaps that hold `least_ns` of stall or more."""

    times: Intervals
    """All stalled time in them."""
    longest: Intervals
    """The longest of it in each gap, the longest gap's first."""
    held_ns: NDArray[np.int64]
    """How much stalled time each gap holds."""


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report the idle time of long gaps in which the host was late for no device's sake."""
    device = requirements.main(trace)
    requirements.reliable_timeline(trace)
    stalls = _stalls(trace, device, options)
    if not _are_enough(trace, stalls, options):
        return
    within = window(trace)
    total_ns = intervals.duration_ns(stalls.times)
    events = tuple(_references(trace, stalls.longest[: options.shown_count]))
    start, end = stalls.longest[0].tolist()
    waits = _is_waiting(trace, start, end)
    doubtful = waits or _unknown(trace, device) > options.unknown_share
    yield Finding(
        confidence="low" if doubtful else "high",
        message=(
            f"{count(len(stalls.held_ns), 'stall')} of {trace.dialect.device} {device.device} "
            f"{'costs' if len(stalls.held_ns) == 1 else 'cost'} "
            f"{duration(within.per_step(total_ns))}"
            f"{' a step' if within.has_steps else ''} "
            f"({share(total_ns / within.reference_ns)}). "
            f"{_host_was(events[0], waits=waits)}"
        ),
        evidence=(
            Evidence(label="Long stalls", value=len(stalls.held_ns), unit="count"),
            Evidence(label="Idle time in them", value=total_ns, unit="ns"),
            Evidence(
                label="Longest stall",
                value=end - start,
                unit="ns",
                link=Link(view="overview", start_ns=start, end_ns=end),
            ),
        ),
        events=events,
        claims=(
            Claim(
                intervals=stalls.times,
                factor=HALF_TO_ALL,
                method="The idle time of these stalls; at least half of it if the work is overlapped.",
            ),
        ),
    )


def _host_was(longest: EventReference, *, waits: bool) -> str:
    """Say what the host did in the longest stall."""
    lasted = duration(longest.duration_ns)
    if longest.name == NOTHING:
        return f"The trace does not tell what the host did in the longest, {lasted}."
    text = f"In the longest, {lasted}, the host was in {longest.name}."
    if waits:
        text += " That call waits for the device: what it waits for was not recorded."
    return text


def _stalls(trace: Trace, device: DeviceActivity, options: Options) -> _Stalls:
    """Return the gaps that hold long stalls; what loading, allocator or waits took is no stall."""
    ledger = idle_ledger(trace)[device.device]
    late = intervals.merged(ledger.times["host-stall"], ledger.times["tail"])
    held = intervals.covered_ns(late, ledger.gaps[:, 0], ledger.gaps[:, 1])
    chosen = held >= options.least_ns
    times = intervals.intersection(ledger.gaps[chosen], late)
    gap = np.searchsorted(ledger.gaps[:, 0], times[:, 0], side="right") - 1
    order = np.lexsort((times[:, 0], times[:, 0] - times[:, 1]))  # longest first
    _, first = np.unique(gap[order], return_index=True)
    return _Stalls(times=times, longest=times[order[np.sort(first)]], held_ns=held[chosen])


def _are_enough(trace: Trace, stalls: _Stalls, options: Options) -> bool:
    if not len(stalls.held_ns):
        return False
    if not len(trace.steps):
        return True
    median = float(np.median(trace.steps["duration_ns"].to_numpy()))
    most = max(int(stalls.held_ns.max()), window(trace).per_step(int(stalls.held_ns.sum())))
    return most >= options.least_step_share * median


def _unknown(trace: Trace, device: DeviceActivity) -> float:
    times = idle_ledger(trace)[device.device].idle_ns
    return times["no-record"] / max(1, window(trace).device_duration_ns)


def _is_waiting(trace: Trace, start_ns: int, end_ns: int) -> bool:
    """Tell whether the host was itself waiting for the device, though that did nothing."""
    return bool(trace.dialect.blocking_call.search(call_during(trace, start_ns, end_ns)))


def _references(trace: Trace, stalls: Intervals) -> Iterator[EventReference]:
    for start, end in stalls.tolist():
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
    detects="",
    saving="",
    effort="day",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority=440,
    links=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    origin="Nsight Systems gpu_gaps; HTA idle time breakdown (host wait)",
)
