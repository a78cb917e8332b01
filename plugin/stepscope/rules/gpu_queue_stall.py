"""Work is queued, and the device does not run it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.findings import EventReference, EvidenceTable, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import codes_and_names
from stepscope.model.intervals import Intervals
from stepscope.rules import CRITICAL_SHARE, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts


class Options(Thresholds):
    """Thresholds from which a device that waits with queued work is worth reporting."""

    least_idle_share: float = option(
        0.05,
        "Fraction of the window in such stalls.",
        origin="ours: healthy public traces have 0 to 0.035, and two with stalls 0.25",
    )
    least_gap_ns: int = option(
        20_000,
        "Shorter waits between a launch and its kernel are the device's latency.",
        origin="ours: a launch reaches an idle device in some 5 µs, a graph's in 10",
    )
    shown_count: int = option(10, "Number of stalls shown.", origin="", is_threshold=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stalls:
    times: Intervals
    """The longest first."""
    next_event: NDArray[np.int64]
    """The row of `device_events` that ended the stall."""


def check(trace: Trace, options: Options) -> Results:
    """Report idle time in which the next work had been launched before it began."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    stalls = _stalls(trace, device, options)
    total_ns = intervals.duration_ns(stalls.times)
    lost = total_ns / max(1, window(trace).duration_ns)
    if lost < options.least_idle_share:
        return
    start_ns, end_ns = stalls.times[0].tolist()
    linked = float(np.mean(links(trace).call_of_device_event[device.rows] >= 0))
    link = Link(view="overview", start_ns=start_ns, end_ns=end_ns)
    yield Finding(
        severity="warning" if lost >= CRITICAL_SHARE else "info",
        message=f"{trace.dialect.device} {device.device} is idle for {share(lost)} of the time "
        f"though its next work had been launched: {count(len(stalls.times), 'stall')}, the longest "
        f"{duration(end_ns - start_ns)}.",
        evidence=(
            facts.fraction("Idle with work queued", lost),
            facts.count("Stalls in total", len(stalls.times)),
            facts.duration("Longest stall", end_ns - start_ns, link),
            facts.fraction("Device work with a recorded launch", linked),
        ),
        tables=(_table(trace, stalls, options),),
        events=tuple(_events(trace, stalls, options)),
    )


def _stalls(trace: Trace, device: DeviceActivity, options: Options) -> _Stalls:
    ledger = idle_ledger(trace)[device.device]
    times = ledger.times["queued"]
    length = times[:, 1] - times[:, 0]
    long = np.flatnonzero(length >= options.least_gap_ns)
    long = long[np.argsort(-length[long], kind="stable")]
    gap = np.searchsorted(ledger.gaps[:, 0], times[long, 0], side="right") - 1
    return _Stalls(times=times[long], next_event=ledger.next_event[gap])


def _table(trace: Trace, stalls: _Stalls, options: Options) -> EvidenceTable:
    """Return the work that began late, by name, the longest wait first."""
    codes, names = codes_and_names(trace.device_events["name"], stalls.next_event)
    length = stalls.times[:, 1] - stalls.times[:, 0]
    total_ns = np.bincount(codes, weights=length, minlength=len(names))
    number = np.bincount(codes, minlength=len(names))
    return facts.table(
        "Work that began late",
        {"Kernel or copy": "code", "Stalls": "count", "Idle before it in total": "ns"},
        (
            (short(names[code]), number[code], total_ns[code])
            for code in np.argsort(-total_ns, kind="stable")[: options.shown_count].tolist()
            if number[code]
        ),
        "kernels",
    )


def _events(trace: Trace, stalls: _Stalls, options: Options) -> Iterator[EventReference]:
    calls = trace.runtime_calls["start_ns"].to_numpy()
    start = trace.device_events["start_ns"].to_numpy()
    for row in stalls.next_event[: options.shown_count].tolist():
        call = int(links(trace).call_of_device_event[row])
        waited = duration(int(start[row] - calls[call]))
        yield event_references.device_event(trace, row, detail=f"began {waited} after its launch")


RULE = Rule(
    id="gpu-queue-stall",
    title="Work is queued and the device does not run it",
    passed="The device runs queued work without delay",
    category="utilization",
    why="The host was in time, so launching faster saves nothing. The device waits for something "
    "else: an event of another stream, a transfer, a peer, or another process that uses it.",
    detects="Idle time of the busiest device in which the next work had already been launched, in "
    "stalls of `least_gap_ns` or more. It reports from `least_idle_share` of the window; its "
    "confidence is low where launches were not recorded.",
    silent=(
        "Waits of less than `least_gap_ns` between a launch and its kernel are latency.",
        "While graphs are captured, launches are recorded and not run.",
    ),
    saving="None is claimed: the cause of the wait is not in the trace.",
    fix=Fix(
        "Find the cause of the wait: events between streams, other processes on the device, "
        "collectives' helper threads. Record the waits between streams.",
        "from torch._C._profiler import _ExperimentalConfig\n"
        "profile(..., experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True))",
        verify="The next trace names the stream and the event that the device waits for.",
        caveats=(
            "Device events that are missing in the file, through a filter or a full buffer, look "
            "the same: see Health.",
        ),
    ),
    effort="day",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "clocks", "steps"}),
    priority="launches",
    after=("tiny-kernels",),
    links=(
        "https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html",
        "notes/cuda.html#cuda-streams",
    ),
    origin="Holistic Trace Analysis: idle time breakdown, other wait",
)
