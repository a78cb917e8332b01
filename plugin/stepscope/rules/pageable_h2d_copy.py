"""Copies to the device come from pageable memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses import references, requirements
from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_device
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.steps.window import window
from stepscope.calibration import HALF_TO_ALL
from stepscope.errors import MissingDataError
from stepscope.intervals import Intervals
from stepscope.quantities import count, duration, share, size
from stepscope.report import EventReference, Evidence, Fix, Link
from stepscope.rules import Claim, Finding, Rule, option, severity_of
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which copies count, and from how many bytes or how much host time on to speak."""

    least_copy_bytes: int = option(
        64_000, "Smaller copies are bound by latency, which pinning does not change.", origin=""
    )
    least_step_bytes: int = option(
        1_000_000, "A step: Nsight Systems lists every pageable copy, which is noise.", origin=""
    )
    least_host_share: float = option(
        0.01, "Of the window, in the calls: then even fewer bytes are worth pinning.", origin=""
    )
    shown_count: int = option(10, "How many events are named.", origin="", is_threshold=False)


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report copies from pageable memory that are large, or keep the host busy."""
    device = requirements.main(trace)
    if not trace.dialect.tells_pageable:
        vendor = trace.dialect.vendor or "this vendor"
        msg = f"{vendor}'s traces do not tell pageable memory from pinned"
        raise MissingDataError(msg)
    copies = copies_to_device(trace, device, least_bytes=options.least_copy_bytes)
    copies = copies.chosen(copies.is_pageable & ~_only_at_first(trace, copies))
    within = window(trace)
    host_share = copies.host_ns / within.reference_ns
    is_large = within.per_step(copies.total_bytes) >= options.least_step_bytes
    if not len(copies.rows) or not (is_large or host_share >= options.least_host_share):
        return
    exposed, stalled = _cost(trace, device, copies)
    claimed = intervals.merged(exposed, stalled)
    claimed_ns = intervals.duration_ns(claimed)
    yield Finding(
        severity=severity_of(claimed_ns / within.reference_ns) or "info",
        message=(
            f"{count(len(copies.rows), 'copy comes', 'copies come')} from pageable memory: "
            f"{size(copies.total_bytes)} at {size(copies.bytes_per_second)}/s; the host spends "
            f"{duration(within.per_step(copies.host_ns))}"
            f"{' a step' if within.has_steps else ''} ({share(host_share)}) staging them."
        ),
        evidence=(
            Evidence(
                label="Bytes a step" if within.has_steps else "Bytes",
                value=within.per_step(copies.total_bytes),
                unit="bytes",
            ),
            Evidence(label="Rate", value=copies.bytes_per_second, unit="bytes/s"),
            Evidence(label="Host time in the copy calls", value=host_share, unit="share"),
            Evidence(
                label="Copying while nothing computes",
                value=intervals.duration_ns(exposed),
                unit="ns",
            ),
            Evidence(
                label="Device idle while the host stages",
                value=intervals.duration_ns(stalled),
                unit="ns",
                link=Link(view="overview"),
            ),
        ),
        events=tuple(_references(trace, copies, options.shown_count)),
        claims=(
            Claim(
                intervals=claimed,
                factor=HALF_TO_ALL,
                low_intervals=exposed,
                method=(
                    "Copy time that nothing hides, idle time while the host stages; pinned copies have "
                    "still to be made, so half of the exposed copy at least."
                ),
            ),
        ),
    )


def _only_at_first(trace: Trace, copies: HostCopies) -> NDArray[np.bool_]:
    """Tell which copies are a one-off: all in the first of several steps (loading the model)."""
    steps = trace.steps
    if len(steps) < 2:
        return np.zeros(len(copies.rows), dtype=bool)
    in_first = copies.call_start_ns < int(steps["start_ns"].iloc[1])
    return in_first if in_first.all() else np.zeros(len(copies.rows), dtype=bool)


def _cost(trace: Trace, device: DeviceActivity, copies: HostCopies) -> tuple[Intervals, Intervals]:
    """Return the copies that nothing hides, and the idle time in which the host stages them."""
    idle = idle_ledger(trace)[device.device].times
    late = intervals.merged(idle["dispatch"], idle["host-stall"])
    exposed = intervals.difference(copies.on_device, device.computation)
    return exposed, intervals.intersection(copies.on_host, late)


def _references(trace: Trace, copies: HostCopies, shown: int) -> Iterator[EventReference]:
    order = np.argsort(-copies.bytes, kind="stable")[:shown]
    for place in order:
        owner = int(copies.owner[place])
        line = references.line_of_host_call(trace, owner)
        amount = size(float(copies.bytes[place]))
        yield references.device_event(
            trace, int(copies.rows[place]), detail=f"{amount}{f' from {line}' if line else ''}"
        )


RULE = Rule(
    id="pageable-h2d-copy",
    title="Copies to the GPU come from pageable memory",
    category="transfer",
    why=(
        "The driver first copies pageable memory into a pinned buffer of its own, in the calling "
        "thread: the copy is slower, cannot overlap, and blocks the host."
    ),
    fix=Fix(
        summary="Let the DataLoader pin its batches, and copy without blocking.",
        code=(
            "loader = DataLoader(dataset, batch_size=..., num_workers=4, pin_memory=True)\n"
            "for batch in loader:\n"
            '    batch = batch.to("cuda", non_blocking=True)'
        ),
        verify="Recorded again, the copies are named `Memcpy HtoD (Pinned -> Device)`.",
        caveats=("Do not pin in the loop (t.pin_memory().to(...)): that may be twice as slow.",),
    ),
    detects="",
    saving="",
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority=150,
    links=("https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",),
    origin="Nsight Systems cuda_memcpy_async; PyTorch tuning guide",
)
