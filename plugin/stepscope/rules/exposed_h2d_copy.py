"""Copies to the device run while nothing computes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope import intervals
from stepscope.analyses import references, requirements
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_device
from stepscope.analyses.idle.data_loading import data_loading
from stepscope.analyses.steps.window import window
from stepscope.calibration import HALF_TO_ALL
from stepscope.quantities import count, duration, share, size
from stepscope.report import EventReference, Evidence, Fix
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Share of the window, 0 to 1, from which to speak."""

    least_share: float = option(
        0.03,
        "TraceLens speaks at 5 % for both directions; xprof at 30 %, which is too late.",
        origin="",
    )
    shown_count: int = option(10, "How many events are named.", origin="", is_threshold=False)


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report copies to the device that no computation hides and that no data loading owns."""
    device = requirements.main(trace)
    within = window(trace)
    copies = copies_to_device(trace, device)
    exposed = intervals.difference(copies.on_device, device.computation)
    exposed = intervals.difference(exposed, data_loading(trace).times)
    exposed = intervals.clip(exposed, within.start_ns, within.device_end_ns)
    exposed_ns = intervals.duration_ns(exposed)
    lost = exposed_ns / max(1, within.device_duration_ns)
    if lost < options.least_share:
        return
    yield Finding(
        message=(
            f"{count(len(copies.rows), 'copy', 'copies')} to the device "
            f"({size(copies.total_bytes)}) "
            f"take {duration(within.per_step(exposed_ns))}"
            f"{' a step' if within.has_steps else ''} ({share(lost)}) in which nothing computes."
        ),
        evidence=(
            Evidence(label="Exposed copying", value=lost, unit="share"),
            Evidence(
                label="Copying in all", value=intervals.duration_ns(copies.on_device), unit="ns"
            ),
            Evidence(label="Bytes copied", value=copies.total_bytes, unit="bytes"),
            Evidence(label="Copies", value=len(copies.rows), unit="count"),
        ),
        events=tuple(_references(trace, copies, options.shown_count)),
        claims=(
            Claim(
                intervals=exposed,
                factor=HALF_TO_ALL,
                method="Copy time in which nothing computes; a prefetcher hides half of it at least.",
            ),
        ),
    )


def _references(trace: Trace, copies: HostCopies, shown: int) -> Iterator[EventReference]:
    order = np.argsort(copies.start_ns - copies.end_ns, kind="stable")[:shown]
    for place in order:
        yield references.device_event(
            trace, int(copies.rows[place]), detail=size(float(copies.bytes[place]))
        )


RULE = Rule(
    id="exposed-h2d-copy",
    title="Copies to the GPU are not overlapped with computing",
    category="transfer",
    why="A copy and kernels can run at once, on different streams; here the kernels wait for it.",
    fix=Fix(
        summary="Copy the next batch on a stream of its own while this one is computed.",
        code=(
            "copier = torch.cuda.Stream()\n"
            "def prefetch(batch):\n"
            "    with torch.cuda.stream(copier):\n"
            '        return batch.to("cuda", non_blocking=True)  # from pinned memory\n'
            "upcoming = prefetch(next(batches))\n"
            "for batch in batches:\n"
            "    torch.cuda.current_stream().wait_stream(copier)\n"
            "    ready, upcoming = upcoming, prefetch(batch)\n"
            "    ready.record_stream(torch.cuda.current_stream())\n"
            "    train_step(ready)"
        ),
        verify="Memcpy's share of the step in Overview falls: copies then run beside kernels.",
        caveats=(
            "Needs pinned memory; sending uint8 and converting on the device halves it again.",
        ),
    ),
    detects="",
    saving="",
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "steps"}),
    priority=170,
    links=("https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",),
    origin="TraceLens exposed memcpy; xprof DataTransferBound",
)
