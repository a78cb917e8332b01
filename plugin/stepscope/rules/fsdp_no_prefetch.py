"""Sharded parameters are gathered when they are needed, not before."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import DistributedSettings, recorded_settings
from stepscope.base.calibration import EXPOSED_COMMUNICATION
from stepscope.base.findings import Evidence
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, facts, phrases, recorded_facts

SHARDED = re.compile(r"^FSDP::|^FullyShardedDataParallel\.")
EARLY = "BACKWARD_PRE"
"""FSDP's `backward_prefetch` that gathers before a unit's gradients are computed."""
QUEUED_NS = 5_000
"""A gather that begins so soon behind another collective was waiting for that one."""
METHOD = (
    "The exposed time of gathers that began while nothing computed, where the device was the "
    "limit; at least 30 % of it."
)


class Options(Thresholds):
    """Thresholds from which gathers count as late, and are worth reporting."""

    least_late_share: float = option(
        0.3,
        "Fraction of the gathers that begin while nothing computes and nothing else is sent.",
        origin="ours: without prefetching all of the forward's begin so, which is half of them",
    )
    least_share: float = option(
        0.05,
        "Fraction of the window in which those run and nothing computes.",
        origin="exposed-communication's threshold (TraceLens: 5 %)",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report all-gathers of FSDP that begin only when there is nothing left to compute."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    wrapper = collective_costs.wrapper(trace)
    requirements.applies_if(wrapper.startswith("FSDP"), "no fully sharded model ran")
    events = collective_costs.timed(trace)
    gathers = _gathers(trace, events, device)
    late = gathers & _begins_late(events, device)
    number, late_number = int(gathers.sum()), int(late.sum())
    if not number or late_number < options.least_late_share * number:
        return
    lost = collective_costs.exposed(trace, late)
    if lost.saved_share < options.least_share:
        return
    steps = max(1, window(trace).step_count)
    yield Finding(
        severity=collective_costs.severity(lost),
        confidence="medium",
        message=f"{late_number / steps:.3g} of {number / steps:.3g} all-gathers "
        f"{phrases.per_step(trace)} of sharded parameters begin when {trace.dialect.device} "
        f"{device.device} has nothing left to compute; it waits for them for "
        f"{duration(lost.a_step_ns)} {phrases.per_step(trace)} ({share(lost.share)}).",
        evidence=(
            facts.count("All-gathers of parameters in total", number),
            facts.count("Late all-gathers in total", late_number),
            facts.fraction("Exposed time of those, of the window", lost.share),
            *_settings(trace),
        ),
        tables=(collective_costs.table(events, late),),
        events=collective_costs.longest(trace, events, late),
        claims=(collective_costs.claim(lost, EXPOSED_COMMUNICATION, METHOD),),
        fix=_fix(wrapper, recorded_settings(trace).distributed),
        subject=wrapper,
    )


def _gathers(trace: Trace, events: pd.DataFrame, device: DeviceActivity) -> collective_costs.Mask:
    kind, on = events["kind"].to_numpy(), events["device"].to_numpy()
    is_timed = events["duration_ns"].notna().to_numpy()
    mask = (kind == "all_gather") & (on == device.device) & is_timed
    return np.asarray(mask & requested_in_calls(trace, SHARDED) & collective_costs.in_window(trace))


def _begins_late(events: pd.DataFrame, device: DeviceActivity) -> NDArray[np.bool_]:
    """Return a mask: began while nothing computed, and not right behind another collective."""
    start = events["start_ns"].to_numpy()
    computes = intervals.covered_ns(device.computation, start, start + 1) > 0
    is_queued = intervals.covered_ns(device.communication, start - QUEUED_NS, start) > 0
    return np.asarray(~computes & ~is_queued)


def _settings(trace: Trace) -> Iterator[Evidence]:
    settings = recorded_settings(trace).distributed
    for name in ("forward_prefetch", "backward_prefetch", "limit_all_gathers"):
        if (value := getattr(settings, name)) is not None:
            yield recorded_facts.evidence(name, str(value), "code")


def _missing(settings: DistributedSettings) -> Iterator[str]:
    """Yield the arguments of FullyShardedDataParallel that would gather earlier, and are not set.

    Where all are set, there is too little to gather ahead: units are few and large.
    """
    if not settings.forward_prefetch:
        yield "forward_prefetch=True"
    if settings.backward_prefetch != EARLY:
        yield f"backward_prefetch=BackwardPrefetch.{EARLY}"
    elif settings.forward_prefetch and settings.limit_all_gathers is not False:
        yield "limit_all_gathers=False"
    elif settings.forward_prefetch:
        yield "auto_wrap_policy=ModuleWrapPolicy({Block})"


def _fix(wrapper: str, settings: DistributedSettings) -> Fix:
    code = (
        "for block, following in zip(blocks, blocks[1:]):\n"
        "    block.set_modules_to_forward_prefetch([following])\n"
        "for block, before in zip(blocks[1:], blocks):\n"
        "    block.set_modules_to_backward_prefetch([before])"
    )
    if wrapper == "FSDP":
        code = f"model = FullyShardedDataParallel(\n    model, {', '.join(_missing(settings))}\n)"
    return Fix(
        "Gather the next unit's parameters while the current unit computes.",
        code,
        verify="All-gathers begin while kernels run, and communication in the step's breakdown "
        "(Overview) falls.",
        caveats=(
            "The parameters of one more unit occupy memory.",
            "The order of units must be the same in every step.",
        ),
    )


RULE = Rule(
    id="fsdp-no-prefetch",
    title="Sharded parameters are gathered only when they are needed",
    passed="The device waits little or not at all for sharded parameters",
    category="communication",
    why="A fully sharded model gathers each unit's parameters before the unit runs. Where that "
    "begins only when the previous unit has ended, the device waits for the whole transfer, unit "
    "by unit; begun one unit earlier, it would be hidden.",
    detects="All-gathers of FSDP that began on the main device while nothing computed and not "
    "right behind another collective. It reports where at least `least_late_share` of them did, "
    "and the device waits for them for `least_share` of the window.",
    silent=(
        "With no device or no fully sharded model it does not apply; while graphs are captured it "
        "is inconclusive.",
        "Gathers that follow each other without a gap are limited by the link: "
        "`exposed-communication` reports them.",
        "Where the host launches the next work later than the gather ends, the host is late.",
    ),
    saving="At most the late gathers' exposed time in which the device was the limit; at least 30 "
    "% of it, since a unit's computing may be shorter than the next unit's transfer.",
    fix=_fix("FSDP2", DistributedSettings()),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "host calls", "steps"}),
    priority="communication",
    after=("sync-batchnorm",),
    links=("distributed.fsdp.fully_shard.html", "fsdp.html"),
    life_cycle="preview",
    origin="torch's FSDP documentation (prefetching)",
    culprit="gathering parameters late",
)
