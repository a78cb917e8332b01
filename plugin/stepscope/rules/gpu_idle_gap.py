"""Long stalls of the device while the host does something else."""

import re
from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.host_activity import NOTHING, activity_during, call_during
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.lazy_loading import first_use_times
from stepscope.analyses.idle.ledger import LongGaps, idle_ledger, late_times, long_gaps
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.calibration import HALF_TO_ALL, UP_TO_ALL
from stepscope.base.findings import EventReference, EvidenceTable, Link
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.sampled_work import sampled_work

CODE = """\
# prepare the next batch while the device computes this one
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    upcoming = pool.submit(prepare, next(batches))
    for batch in batches:
        ready, upcoming = upcoming.result(), pool.submit(prepare, batch)
        train_step(ready)
    train_step(upcoming.result())"""
OVERLAPPED = "The idle time of these stalls; at least half of it if the work is overlapped."
WAITED = "The idle time of these stalls; nothing, if the device worked unrecorded meanwhile."
RECORD_STACKS = "profile(..., with_stack=True)  # names the function that takes the time"
WITHOUT_STACKS = (
    "Where stacks were not recorded, the source line is unknown: profile(with_stack=True)."
)
VERIFY = "The stalls of 1 ms and more are gone from the idle causes in Overview."
UNRECORDED_WORK = Fix(
    "Record the work that the call waits for: of another process, thread or earlier step.",
    "torch.profiler.profile(...)  # without `activities`: all; begin a step or two earlier",
    verify="The device is busy while the host waits, or the wait is gone.",
    caveats=("If the device works meanwhile, nothing is lost here.",),
)
OF_THE_MODEL = re.compile(r": (?:forward|backward|__call__)$")
STAGED_COPY = Fix(
    "In the longest stall the host stages a copy: load into pinned memory, and do not block.",
    "loader = DataLoader(dataset, ..., pin_memory=True)\n"
    "batch = batch.to(device, non_blocking=True)",
    verify="Copies come from pinned memory, and their calls take microseconds.",
    caveats=("pageable-h2d-copy reports the cost of all such copies.",),
)


class Options(Thresholds):
    """Thresholds from which a stall is long, and worth reporting."""

    least_ns: int = option(
        1_000_000,
        "Idle time in a gap from which it is a stall.",
        origin="ours: below 1 ms it is dispatch, which launch-bound reports; dispatching an "
        "operator takes some 10 µs",
    )
    least_step_share: float = option(
        0.05,
        "The longest stall, or a step's stalls together, as a fraction of the median step.",
        origin="ours: scaled to the step, since Nsight Systems' fixed 500 ms never occurs in "
        "training",
    )
    unknown_share: float = option(
        0.05,
        "Fraction of the window idle without a recorded launch from which causes are in doubt.",
        origin="ours: the least stall that is worth reporting",
    )
    shown_count: int = option(10, "Number of stalls shown.", origin="", is_threshold=False)


def check(trace: Trace, options: Options) -> Results:
    """Report the idle time of long gaps in which the host was late, not waiting for a device."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    late = late_times(trace, device)
    loading = intervals.intersection(late, first_use_times(trace))
    unnamed = intervals.difference(late, intervals.merged(loading, _sampled_times(trace)))
    stalls = long_gaps(trace, device, unnamed, options.least_ns)
    if _are_enough(trace, stalls, options):
        yield _finding(trace, device, stalls, options)
    if _are_enough(trace, long_gaps(trace, device, loading, options.least_ns), options):
        total_ns = intervals.duration_ns(loading)
        yield RuledOut(
            message=f"{trace.dialect.device} {device.device} is idle for {duration(total_ns)} in "
            "total while kernels' code is loaded, and libraries prepare, at their first use. That "
            "happens once: record after the warm-up.",
            evidence=(
                facts.duration("Loading code, device idle, in total", total_ns),
                facts.count("Calls in total", len(loading)),
            ),
        )


def _sampled_times(trace: Trace) -> Intervals:
    """Return the times in which samples name the lines at work, which hot-path reports."""
    sure = (work for work in sampled_work(trace) if work.is_sure)
    claims = (claim.intervals for work in sure for claim in work.claims)
    return intervals.merged(intervals.EMPTY, *claims)


def _finding(trace: Trace, device: DeviceActivity, stalls: LongGaps, options: Options) -> Finding:
    span, number = window(trace), len(stalls.idle_ns)
    total_ns = intervals.duration_ns(stalls.times)
    events = tuple(_references(trace, stalls.longest[: options.shown_count]))
    start, end = stalls.longest[0].tolist()
    waits = bool(trace.dialect.blocking_call.search(call_during(trace, start, end)))
    is_start = start <= span.start_ns and not event_references.FRAME.match(events[0].name)
    is_single = (events[0].name == NOTHING or is_start) and span.step_count <= 1
    no_record_ns = idle_ledger(trace)[device.device].idle_ns["no-record"]
    unknown = no_record_ns / max(1, span.duration_ns)
    doubtful = waits or is_single or unknown > options.unknown_share
    link = Link(view="overview", start_ns=start, end_ns=end)
    return Finding(
        confidence="low" if doubtful else "medium" if events[0].name == NOTHING else "high",
        message=f"{count(number, 'stall')} of {trace.dialect.device} {device.device} "
        f"{'costs' if number == 1 else 'cost'} {phrases.time_and_fraction(trace, total_ns)}. "
        f"{_activity(events[0], waits=waits)}",
        evidence=(
            facts.count("Long stalls in total", number),
            facts.duration("Idle time in them in total", total_ns),
            facts.duration("Longest stall", end - start, link),
        ),
        tables=(_table(events),),
        events=events,
        locations=event_references.source_lines(
            event.name.rpartition(", called from ")[2] for event in events
        ),
        claims=(
            Claim(
                stalls.times, UP_TO_ALL if waits else HALF_TO_ALL, WAITED if waits else OVERLAPPED
            ),
        ),
        fix=UNRECORDED_WORK if waits else _fix(trace, events[0]),
    )


def _table(events: tuple[EventReference, ...]) -> EvidenceTable:
    """Return the host's activities in the longest stalls, with their sums."""
    totals: dict[str, list[int]] = {}
    for event in events:
        number_and_time = totals.setdefault(event.name, [0, 0])
        number_and_time[0] += 1
        number_and_time[1] += event.duration_ns
    ordered = sorted(totals.items(), key=lambda item: -item[1][1])
    return facts.table(
        "Activity of the host in the longest stalls",
        {"Host": "code", "Stalls": "count", "Device idle in total": "ns"},
        ((name, *number_and_time) for name, number_and_time in ordered),
    )


def _fix(trace: Trace, longest: EventReference) -> Fix:
    staged = trace.dialect.staged_copy_call
    if staged and staged.search(longest.name):
        return STAGED_COPY
    function = longest.name.rpartition(", called from ")[2]
    is_function = bool(event_references.FRAME.match(function)) and not OF_THE_MODEL.search(function)
    inside = "" if longest.name == NOTHING else f" in {function}"
    caveats = () if len(trace.python_calls) else (WITHOUT_STACKS,)
    return Fix(
        f"Move {function} off the critical path, or overlap it with the previous step."
        if is_function
        else f"Find the host's work at that time{inside}, and overlap it with the previous step.",
        CODE if is_function else RECORD_STACKS if caveats else "",
        verify=VERIFY,
        caveats=("Work that needs this step's results cannot overlap it.", *caveats),
    )


def _activity(longest: EventReference, *, waits: bool) -> str:
    """Return a sentence about the host's activity in the longest stall."""
    lasted = duration(longest.duration_ns)
    if longest.name == NOTHING:
        return f"The host's activity in the longest, {lasted}, is not in the trace."
    text = f"In the longest, {lasted}, the host was in {longest.name}."
    if waits:
        text += " That call waits for the device, for work that was not recorded."
    return text


def _are_enough(trace: Trace, stalls: LongGaps, options: Options) -> bool:
    if not len(stalls.idle_ns):
        return False
    if not window(trace).has_steps:
        return True
    median = float(np.median(step_breakdown(trace).duration_ns))
    most = max(int(stalls.idle_ns.max()), window(trace).per_step(int(stalls.idle_ns.sum())))
    return most >= options.least_step_share * median


def _references(trace: Trace, stalls: Intervals) -> Iterator[EventReference]:
    for start, end in stalls.tolist():
        yield EventReference(
            name=activity_during(trace, start, end),
            track="host",
            start_ns=start,
            duration_ns=end - start,
            detail="activity of the host while the device was idle",
        )


RULE = Rule(
    id="gpu-idle-gap",
    title="Long stalls of the device",
    passed="The device has no long idle gaps",
    category="utilization",
    why="For a millisecond or more the host gave the device no work: preprocessing, file access, "
    "logging or other Python code ran in between.",
    detects="Gaps of the busiest device in which the host was late by `least_ns` or more, and the "
    "time after the device's last work, with the main thread's activity. It reports where the "
    "longest stall, or a step's stalls together, reach `least_step_share` of the median step. Its "
    "confidence is low where more than `unknown_share` of the window is idle without a recorded "
    "launch, where the host itself waited for unrecorded work, or where the only step has no "
    "recorded activity or begins with an operator's stall; it is medium where the activity in the "
    "longest stall is unknown.",
    silent=(
        "Data loading, the allocator and waits for the device are reported by other rules.",
        "Loading a kernel's code and preparing its library happen once, at the first use: they "
        "are ruled out.",
        "Time that a more specific rule claims, such as numpy-in-step, is counted under that rule.",
        "Time in which samples of unrecorded steps name the lines at work is hot-path's.",
        "Gaps of less than 1 ms are dispatch: launch-bound reports them.",
        "Without steps, the time before the device's first work is no stall.",
        "On the CPU alone nothing is idle: numpy-in-step reports time without operators.",
    ),
    saving="At most the idle time of these stalls; at least half of it, if the work is overlapped "
    "with the previous step, or nothing, where the host waited for unrecorded work.",
    fix=Fix(
        "Move that work off the critical path, or overlap it with the previous step.",
        CODE,
        verify=VERIFY,
        caveats=(WITHOUT_STACKS,),
    ),
    effort="day",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority="launches",
    after=("graph-breaks",),
    culprit="the host's own work between launches",
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html",
        "https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html",
    ),
    origin="Nsight Systems gpu_gaps; HTA idle time breakdown (host wait)",
)
