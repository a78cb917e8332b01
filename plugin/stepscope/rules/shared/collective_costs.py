"""Collectives of the rules on communication: their exposed time, groups, sizes and events."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import collective_events
from stepscope.analyses.core import event_references, group_statistics, requirements
from stepscope.analyses.core.exposed_communication import (
    HOST,
    computing_times,
    exposed_times,
    host_computing,
    running_times,
)
from stepscope.analyses.core.links import rows_of_keys
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import ALL_OF_IT, SHARED_CORES, Factor, part_of
from stepscope.base.findings import (
    Effort,
    EventReference,
    EvidenceRow,
    EvidenceTable,
    Fix,
    Link,
    Risk,
    Severity,
    SourceLine,
)
from stepscope.base.formatting import size_range
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim, applies_if, conclusive_if, severity_of
from stepscope.rules.shared import facts
from stepscope.rules.shared.claimable_time import claimed_ns

Mask = NDArray[np.bool_]
"""Over the rows of `collectives`."""
SHOWN_COUNT = 10
RECORD_OPERATORS = "torch.profiler.profile(activities=[ProfilerActivity.CPU], ...)"
UNNAMED = frozenset({"", "undefined"})
"""Descriptions that torch gives to groups without any."""
SINGLE_RANK = (
    "The trace of a single rank does not separate transfer from waiting: record all ranks, and see "
    "straggler-rank, before tuning the transfer."
)
VERIFY = "Communication in the step's breakdown (Overview) falls, and so does the step."
GLOO_THREADS = 2
"""Threads of a process that communicate, by torch's default (ProcessGroupGloo)."""
SLOWED = (
    "Computing is slower while {} are sent, since the process has no core to spare: 30 to 70 % of "
    "that time."
)
Advice = tuple[str, Fix, Effort, Risk]
"""The origin of communication in a word; the fix; its effort; its risk."""
WRAPPERS: dict[str, re.Pattern[str]] = {
    "FSDP2": re.compile(r"^FSDP::"),
    "FSDP": re.compile(r"^FullyShardedDataParallel[.:]"),
    "DDP": re.compile(r"^DistributedDataParallel\.forward$|^torch\.distributed\.ddp\.reducer::"),
}
"""Names that wrapped models write into a trace: `fully_shard`, its predecessor, and DDP."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exposed:
    """Times in the window in which collectives ran and nothing computed."""

    times: Intervals
    share: float
    """Of the window."""
    a_step_ns: int
    """Per step, or in total where there are no steps."""
    is_device_work: bool
    saved_share: float
    """Of the window: the most that it would be shorter without them."""


def timed(trace: Trace) -> pd.DataFrame:
    """Return `collective_events`, one row per collective.

    Raises:
        NotApplicableError: there is none.
        MissingDataError: no duration was recorded, or nothing that could compute meanwhile, or
            graphs were being captured.
    """
    requirements.reliable_timeline(trace)
    events = collective_events(trace)
    applies_if(len(events), "the trace contains no collective")
    conclusive_if(
        events["duration_ns"].notna().any(),
        "of collectives only the host's calls were recorded, not their durations",
        requirements.RECORD_DEVICE,
    )
    span = window(trace)
    conclusive_if(
        len(trace.device_events)
        or len(intervals.clip(host_computing(trace), span.start_ns, span.end_ns)),
        "nothing that computes was recorded besides collectives: the delay they cause is unknown",
        RECORD_OPERATORS,
    )
    return events


def in_window(trace: Trace) -> Mask:
    """Return a mask of `collectives`: began in the window."""
    span, start = window(trace), trace.collectives["start_ns"].to_numpy()
    return np.asarray((start >= span.device_start_ns) & (start < span.device_end_ns))


def wrapper(trace: Trace) -> str:
    """Return the model's wrapper, a key of `WRAPPERS`; "" where no name shows it."""
    names = [str(name) for name in trace.host_calls["name"].cat.categories]
    matches = (key for key, mark in WRAPPERS.items() if any(map(mark.search, names)))
    return next(matches, "")


def exposed(trace: Trace, mask: Mask) -> Exposed:
    """Return the exposed time of some collectives."""
    span, times = window(trace), exposed_times(trace, mask)
    total_ns = intervals.duration_ns(times)
    is_device_work = bool((mask & (trace.collectives["kernel_count"].to_numpy() > 0)).any())
    without = Claim(times, ALL_OF_IT, is_device_work=is_device_work)
    return Exposed(
        times=times,
        share=total_ns / span.reference_ns,
        a_step_ns=span.per_step(total_ns),
        is_device_work=is_device_work,
        saved_share=claimed_ns(trace, (without,)) / span.reference_ns,
    )


def running(trace: Trace, mask: Mask) -> int:
    """Return for how many nanoseconds of the window some collectives ran."""
    return intervals.duration_ns(running_times(trace, mask))


def claim(lost: Exposed, factor: Factor, method: str) -> Claim:
    """Claim exposed time."""
    return Claim(lost.times, factor, method, is_device_work=lost.is_device_work)


def slowed(trace: Trace, mask: Mask, sent: str, share: float = 1.0) -> tuple[Claim, ...]:
    """Claim a part of the computing that some collectives slow, as they take its cores.

    Empty with devices, and unless the settings show that the process has no core to spare for its
    communicating threads. `sent` names the collectives, of whose time a `share` goes.
    """
    host = recorded_settings(trace).host
    threads, usable = host.thread_count, host.usable_cpu_count
    if len(trace.device_events) or threads is None or usable is None:
        return ()
    times = intervals.intersection(running_times(trace, mask), computing_times(trace)[HOST])
    if threads + GLOO_THREADS <= usable or not len(times):
        return ()
    return (Claim(times, part_of(SHARED_CORES, share), SLOWED.format(sent)),)


def severity(lost: Exposed) -> Severity:
    """Return the severity of exposed time, all of which could be saved; at least `info`."""
    return severity_of(lost.saved_share) or "info"


def host_is_late(trace: Trace, lost: Exposed) -> str:
    """Return a sentence where the host would be as late without these collectives, else ""."""
    if lost.share < INFO_SHARE or lost.saved_share >= lost.share / 2:
        return ""
    return f" Meanwhile the host had not launched the {trace.dialect.device}'s next work."


def group_name(events: pd.DataFrame) -> str:
    """Return the group of some collectives: `default_pg (8 ranks)`; "" where it is unknown."""
    first = events.iloc[0]
    description, name, ranks = first["group_description"], first["group"], first["group_size"]
    text = description if isinstance(description, str) and description not in UNNAMED else name
    text = str(text) if isinstance(text, str) else ""
    if text.isdigit():
        text = f"group {text}"
    return f"{text} ({ranks:.0f} ranks)".strip() if ranks > 0 else text


def message_size(events: pd.DataFrame) -> str:
    """Return the size of some collectives: `4.88 MiB`, `7.81–30.0 MiB`; "" where unknown."""
    sizes = events["message_bytes"].dropna()
    return size_range(sizes.min(), sizes.max()) if len(sizes) else ""


def table(events: pd.DataFrame, mask: Mask) -> EvidenceTable:
    """Return collectives by kind, group and message, the longest exposed first."""
    rows = events[mask & events["duration_ns"].notna().to_numpy()]
    number, first = group_statistics.group_rows(rows, ("kind", "group", "message_bytes"))
    lost = group_statistics.sums(rows["exposed_ns"].to_numpy().astype(np.int64), number, len(first))
    worst = np.argsort(-lost, kind="stable")[:SHOWN_COUNT]
    return facts.table(
        "Collectives",
        {
            "Collective": "text",
            "Group": "text",
            "Message": "bytes",
            "Calls": "count",
            "Time in total": "ns",
            "Exposed in total": "ns",
            "Bus bandwidth": "bytes/s",
        },
        (_row(rows[number == group]) for group in worst),
    )


def _row(same: pd.DataFrame) -> EvidenceRow:
    first = same.iloc[0]
    link = Link(view="kernels", search=str(first["name"])) if first["kernel_count"] else None
    return facts.row(
        str(first["kind"]),
        group_name(same),
        first["message_bytes"],
        len(same),
        int(same["duration_ns"].sum()),
        int(same["exposed_ns"].sum()),
        same["bus_bytes_per_second"].max(),
        link=link,
    )


def longest(trace: Trace, events: pd.DataFrame, mask: Mask) -> tuple[EventReference, ...]:
    """Return the collectives that were exposed longest."""
    lost = np.where(mask, events["exposed_ns"].fillna(0.0).to_numpy(), 0.0)
    order = np.argsort(-lost, kind="stable")
    worst = order[lost[order] > 0][:SHOWN_COUNT]
    number = events["event"].to_numpy()[worst]
    kernels = rows_of_keys(number, trace.device_events["event"].to_numpy())
    calls = rows_of_keys(number, trace.host_calls["event"].to_numpy())
    details = [message_size(events.iloc[[row]]) for row in worst]
    return tuple(
        event_references.device_event(trace, int(kernel), detail)
        if kernel >= 0
        else event_references.host_call(trace, int(call), detail)
        for kernel, call, detail in zip(kernels, calls, details, strict=True)
        if kernel >= 0 or call >= 0
    )


def locations(trace: Trace, mask: Mask) -> tuple[SourceLine, ...]:
    """Return the user's lines that requested the first of some collectives."""
    first = trace.collectives["call"].to_numpy()[np.flatnonzero(mask)[:SHOWN_COUNT]]
    rows = rows_of_keys(first, trace.host_calls["event"].to_numpy())
    return event_references.source_lines(
        event_references.line_of_host_call(trace, int(row)) for row in rows
    )
