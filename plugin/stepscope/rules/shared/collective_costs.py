"""What the rules on communication have in common: which collectives, how long exposed, in words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import collective_events
from stepscope.analyses.communication.exposed_collectives import exposed_times, running_times
from stepscope.analyses.core import event_references, group_statistics, requirements
from stepscope.analyses.core.exposed_communication import host_computing
from stepscope.analyses.core.links import rows_of_keys
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.base.calibration import Factor
from stepscope.base.errors import MissingDataError, NotApplicableError
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
    Unit,
)
from stepscope.base.formatting import size
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim, severity_of
from stepscope.rules.shared import facts

Chosen = NDArray[np.bool_]
"""A mask over the rows of `collectives`."""
SHOWN_COUNT = 10
RECORD_OPERATORS = "torch.profiler.profile(activities=[ProfilerActivity.CPU], ...)"
UNNAMED = frozenset({"", "undefined"})
"""Descriptions that torch gives to groups that were given none."""
SINGLE_RANK = (
    "One rank alone cannot tell transfer from waiting: record all ranks, and see what "
    "straggler-rank says of them, before tuning the transfer."
)
VERIFY = "Communication in the step's breakdown (Overview) falls, and so does the step."
Advice = tuple[str, Fix, Effort, Risk]
"""Who communicates, in a word; what to do about it; what that takes; what it may change."""
COLUMNS: Mapping[str, Unit] = {
    "Collective": "text",
    "Group": "text",
    "Message": "bytes",
    "Calls": "count",
    "Time": "ns",
    "Exposed": "ns",
    "Bus bandwidth": "bytes/s",
}


WRAPPERS: dict[str, re.Pattern[str]] = {
    "FSDP2": re.compile(r"^FSDP::"),
    "FSDP": re.compile(r"^FullyShardedDataParallel[.:]"),
    "DDP": re.compile(r"^DistributedDataParallel\.forward$|^torch\.distributed\.ddp\.reducer::"),
}
"""What wrapped models write into a recording: `fully_shard`, the class before it, and DDP."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exposed:
    """When collectives ran and nothing computed meanwhile, within the window."""

    times: Intervals
    share: float
    """Of the window."""
    a_step_ns: int
    """Of a step, or in all where there are no steps."""
    is_device_work: bool
    won_share: float
    """Of the window: that part in which the device, not the host, is the limit; on the host all."""


def timed(trace: Trace) -> pd.DataFrame:
    """Return `collective_events`, one row a collective.

    Raises:
        NotApplicableError: there is none.
        MissingDataError: of none it is known how long it took, or nothing was recorded that could
            compute meanwhile, or graphs were being captured.
    """
    requirements.reliable_timeline(trace)
    events = collective_events(trace)
    if not len(events):
        msg = "the recording holds no collective"
        raise NotApplicableError(msg)
    if not events["duration_ns"].notna().any():
        msg = "of collectives only the host's calls were recorded, not how long they took"
        raise MissingDataError(msg, requirements.RECORD_DEVICE)
    if not len(trace.device_events) and not len(_clipped(trace, host_computing(trace))):
        msg = "beside collectives nothing was recorded that computes: what they delay is not known"
        raise MissingDataError(msg, RECORD_OPERATORS)
    return events


def within(trace: Trace) -> Chosen:
    """Tell which rows of `collectives` began within the window."""
    span, start = window(trace), trace.collectives["start_ns"].to_numpy()
    return np.asarray((start >= span.start_ns) & (start < span.device_end_ns))


def _clipped(trace: Trace, times: Intervals) -> Intervals:
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.end_ns)


def wrapper(trace: Trace) -> str:
    """Return how the model is wrapped, a key of `WRAPPERS`; "" where nothing tells."""
    names = [str(name) for name in trace.host_calls["name"].cat.categories]
    seen = (key for key, mark in WRAPPERS.items() if any(map(mark.search, names)))
    return next(seen, "")


def exposed(trace: Trace, chosen: Chosen) -> Exposed:
    """Return when the chosen collectives were exposed, and what that is of the window."""
    span, times = window(trace), exposed_times(trace, chosen)
    total_ns = intervals.duration_ns(times)
    is_device_work = bool((chosen & (trace.collectives["kernel_count"].to_numpy() > 0)).any())
    won = times
    if is_device_work:
        won = intervals.intersection(times, gpu_bound_times(trace).possible)
    return Exposed(
        times=times,
        share=total_ns / span.reference_ns,
        a_step_ns=span.per_step(total_ns),
        is_device_work=is_device_work,
        won_share=intervals.duration_ns(won) / span.reference_ns,
    )


def running(trace: Trace, chosen: Chosen) -> int:
    """Return for how many nanoseconds of the window the chosen collectives ran."""
    return intervals.duration_ns(running_times(trace, chosen))


def claim(lost: Exposed, factor: Factor, method: str) -> Claim:
    """Claim exposed time: of a device's, that part in which the device is the limit."""
    return Claim(lost.times, factor, method, is_device_work=lost.is_device_work)


def severity(lost: Exposed) -> Severity:
    """Return how serious exposed time is, all of which could be won; at least `info`."""
    return severity_of(lost.won_share) or "info"


def host_is_late(trace: Trace, lost: Exposed) -> str:
    """Say that without these collectives the host would be as late; "" where that is no matter."""
    if lost.share < INFO_SHARE or lost.won_share >= lost.share / 2:
        return ""
    device = trace.dialect.device
    return f" Meanwhile the host had not launched what the {device} does next."


def group_words(events: pd.DataFrame) -> str:
    """Name the group of some collectives: `default_pg (8 ranks)`; "" where none is known."""
    first = events.iloc[0]
    description, name, ranks = first["group_description"], first["group"], first["group_size"]
    words = description if isinstance(description, str) and description not in UNNAMED else name
    words = str(words) if isinstance(words, str) else ""
    if words.isdigit():
        words = f"group {words}"
    return f"{words} ({ranks:.0f} ranks)".strip() if ranks > 0 else words


def message_words(events: pd.DataFrame) -> str:
    """Say how much some collectives send: `5.11 MB`, `8.20 MB to 31.5 MB`; "" where unknown."""
    known = events["message_bytes"].dropna()
    if not len(known):
        return ""
    least, most = size(known.min()), size(known.max())
    return least if least == most else f"{least} to {most}"


def table(events: pd.DataFrame, chosen: Chosen) -> EvidenceTable:
    """Return the chosen collectives by kind, group and message, the longest exposed first."""
    mine = events[chosen & events["duration_ns"].notna().to_numpy()]
    number, first = group_statistics.group_rows(mine, ("kind", "group", "message_bytes"))
    lost = group_statistics.sums(mine["exposed_ns"].to_numpy().astype(np.int64), number, len(first))
    worst = np.argsort(-lost, kind="stable")[:SHOWN_COUNT]
    rows = tuple(_row(mine[number == place]) for place in worst)
    return facts.table("Collectives", COLUMNS, rows)


def _row(same: pd.DataFrame) -> EvidenceRow:
    message, best = same["message_bytes"].iloc[0], same["bus_bytes_per_second"].max()
    name = str(same["name"].iloc[0])
    return facts.row(
        str(same["kind"].iloc[0]),
        group_words(same) or None,
        None if np.isnan(message) else int(message),
        len(same),
        int(same["duration_ns"].sum()),
        int(same["exposed_ns"].sum()),
        None if np.isnan(best) else float(best),
        link=Link(view="kernels", search=name) if same["kernel_count"].iloc[0] else None,
    )


def longest(trace: Trace, events: pd.DataFrame, chosen: Chosen) -> tuple[EventReference, ...]:
    """Name the chosen collectives that were exposed longest."""
    lost = np.where(chosen, events["exposed_ns"].fillna(0.0).to_numpy(), 0.0)
    order = np.argsort(-lost, kind="stable")
    worst = order[lost[order] > 0][:SHOWN_COUNT]
    number = events["event"].to_numpy()[worst]
    kernels = rows_of_keys(number, trace.device_events["event"].to_numpy())
    calls = rows_of_keys(number, trace.host_calls["event"].to_numpy())
    details = [message_words(events.iloc[[row]]) for row in worst]
    return tuple(
        event_references.device_event(trace, int(kernel), detail)
        if kernel >= 0
        else event_references.host_call(trace, int(call), detail)
        for kernel, call, detail in zip(kernels, calls, details, strict=True)
        if kernel >= 0 or call >= 0
    )


def locations(trace: Trace, chosen: Chosen) -> tuple[SourceLine, ...]:
    """Return the user's lines that asked for the first of the chosen collectives."""
    first = trace.collectives["call"].to_numpy()[np.flatnonzero(chosen)[:SHOWN_COUNT]]
    rows = rows_of_keys(first, trace.host_calls["event"].to_numpy())
    return event_references.source_lines(
        event_references.line_of_host_call(trace, int(row)) for row in rows
    )
