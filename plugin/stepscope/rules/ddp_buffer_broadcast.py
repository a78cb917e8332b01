"""DDP sends the model's buffers before every forward."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence, Fix
from stepscope.base.formatting import count, duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases, recorded_facts

BUCKET_SIZES_TYPE = "int32"
"""Of DDP's own broadcast, once, when it has ordered its buckets anew (reducer.cpp)."""
METHOD = (
    "Broadcasts of buffers while nothing computed, at least half: where a rank comes late, the "
    "others wait for it later instead."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """When broadcasts are worth a word."""

    least_share: float = option(
        0.005,
        "Share of the window in which broadcasts of buffers run and nothing computes.",
        origin="ours: three public DDP recordings show 0.02 to 0.07 %",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report broadcasts that DDP's forward asks for."""
    ddp.require_ddp(trace)
    is_asked_for = recorded_settings(trace).distributed.broadcast_buffers
    if is_asked_for is False:
        return
    events = collective_costs.timed(trace)
    is_broadcast = np.asarray(
        (events["kind"] == "broadcast") & (events["dtype"] != BUCKET_SIZES_TYPE)
    )
    chosen = (
        is_broadcast & requested_in_calls(trace, ddp.FORWARD) & collective_costs.in_window(trace)
    )
    if not chosen.any():
        return
    lost = collective_costs.exposed(trace, chosen)
    number = int(chosen.sum())
    sent = collective_costs.message_size(events[chosen]) or "of unknown size"
    words = f"{count(number, 'broadcast')} of buffers ({sent})"
    evidence: tuple[Evidence, ...] = (
        facts.count("Broadcasts", number),
        facts.fraction("Exposed, of the window", lost.share),
    )
    if is_asked_for is not None:
        evidence += (recorded_facts.evidence("broadcast_buffers", str(is_asked_for), "code"),)
    tables = (collective_costs.table(events, chosen),)
    if lost.won_share < options.least_share:
        text = f"{words} in DDP's forward take {share(lost.share)} of the time."
        text += collective_costs.host_is_late(trace, lost)
        yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    yield Finding(
        severity=collective_costs.severity(lost),
        confidence="medium",
        message=f"{words} in DDP's forward cost {duration(lost.a_step_ns)} "
        f"{phrases.per_step(trace)} ({share(lost.share)}).",
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, chosen),
        claims=(collective_costs.claim(lost, HALF_TO_ALL, METHOD),),
    )


RULE = Rule(
    id="ddp-buffer-broadcast",
    title="DDP sends all buffers before every forward",
    category="communication",
    why="By default DistributedDataParallel sends rank 0's buffers (mostly the running statistics "
    "of batch norms) to all ranks at the start of every forward. Nothing can compute until they "
    "have come, and every rank waits there for the latest.",
    detects="Broadcasts that were asked for in DistributedDataParallel.forward, while nothing "
    "computed. It speaks where they take `least_share` of the window or more.",
    silent=(
        "With no DistributedDataParallel, or no collective at all, it does not apply.",
        "The one broadcast with which DDP orders its buckets is none of a buffer, nor is any where "
        "broadcast_buffers was recorded as False.",
        "Broadcasts that take next to no time, or during which the host has not launched yet what "
        "comes next, are listed as harmless.",
    ),
    saving="Half to all of the exposed time: where a rank comes late, the others wait for it in "
    "the gradients' all-reduces instead.",
    fix=Fix(
        "Do not send buffers, or hold none that must be equal on all ranks.",
        "model = DDP(model, broadcast_buffers=False)\n"
        "# as torch 2.13 has it: DDP(model, forward_sync_buffers=False)",
        verify="The next recording has no broadcast in DistributedDataParallel.forward.",
        caveats=(
            "Each rank then keeps running statistics of its own data; what rank 0 saves are its "
            "own. Convert to SyncBatchNorm, or average them before saving, where that matters.",
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority=205,
    links=(ddp.DOCUMENTATION,),
    life_cycle="preview",
    origin="torch's DDP documentation (broadcast_buffers)",
    culprit="sending buffers",
)
