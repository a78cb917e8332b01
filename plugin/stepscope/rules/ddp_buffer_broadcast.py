"""DDP sends the model's buffers before every forward."""

import numpy as np

from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence
from stepscope.base.formatting import count, duration, share
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases, recorded_facts

BUCKET_SIZES_TYPE = "int32"
"""Data type of DDP's one broadcast after it has reordered its buckets (reducer.cpp)."""
METHOD = (
    "Broadcasts of buffers while nothing computed, at least half: where a rank comes late, the "
    "others wait for it later instead."
)


class Options(Thresholds):
    """Thresholds from which broadcasts are worth reporting."""

    least_share: float = option(
        0.005,
        "Fraction of the window in which broadcasts of buffers run and nothing computes.",
        origin="ours: three public DDP traces show 0.02 to 0.07 %",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report broadcasts of DDP's forward."""
    ddp.require_ddp(trace)
    setting = recorded_settings(trace).distributed.broadcast_buffers
    if setting is False:
        return
    events = collective_costs.timed(trace)
    is_broadcast = (events["kind"] == "broadcast") & (events["dtype"] != BUCKET_SIZES_TYPE)
    mask = np.asarray(is_broadcast) & requested_in_calls(trace, ddp.FORWARD)
    mask &= collective_costs.in_window(trace)
    if not mask.any():
        return
    lost = collective_costs.exposed(trace, mask)
    sent = collective_costs.message_size(events[mask]) or "of unknown size"
    text = f"{count(int(mask.sum()), 'broadcast')} of buffers ({sent}) in DDP's forward"
    evidence: tuple[Evidence, ...] = (
        facts.count("Broadcasts in total", int(mask.sum())),
        facts.fraction("Exposed, of the window", lost.share),
    )
    if setting is not None:
        evidence += (recorded_facts.evidence("broadcast_buffers", str(setting), "code"),)
    tables = (collective_costs.table(events, mask),)
    if lost.saved_share < options.least_share:
        late = collective_costs.host_is_late(trace, lost)
        message = f"{text} take {share(lost.share)} of the time.{late}"
        yield RuledOut(message=message, evidence=evidence, tables=tables)
        return
    yield Finding(
        severity=collective_costs.severity(lost),
        confidence="medium",
        message=f"{text} cost {duration(lost.a_step_ns)} {phrases.per_step(trace)} "
        f"({share(lost.share)}).",
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, mask),
        claims=(collective_costs.claim(lost, HALF_TO_ALL, METHOD),),
    )


RULE = Rule(
    id="ddp-buffer-broadcast",
    title="DDP sends all buffers before every forward",
    passed="DDP broadcasts no buffers that cost time",
    category="communication",
    why="By default DistributedDataParallel sends rank 0's buffers (mostly the running statistics "
    "of batch norms) to all ranks at the start of every forward. Nothing can compute until they "
    "have arrived, and every rank waits there for the latest.",
    detects="Broadcasts requested in DistributedDataParallel.forward, while nothing computed. It "
    "reports where they take `least_share` of the window or more.",
    silent=(
        "With no DistributedDataParallel, or no collective at all, it does not apply.",
        "The one broadcast with which DDP orders its buckets sends no buffer, and with "
        "broadcast_buffers recorded as False none does.",
        "Broadcasts that take next to no time, or during which the host has not yet launched the "
        "next work, are ruled out.",
    ),
    saving="Half to all of the exposed time: where a rank comes late, the others wait for it in "
    "the gradients' all-reduces instead.",
    fix=Fix(
        "Do not send buffers, or use none that must be equal on all ranks.",
        "model = DDP(model, broadcast_buffers=False)\n"
        "# in torch 2.13: DDP(model, forward_sync_buffers=False)",
        verify="The next trace has no broadcast in DistributedDataParallel.forward.",
        caveats=(
            "Each rank then has running statistics of its part of the data, and rank 0 saves its "
            "part. Convert to SyncBatchNorm, or average them before saving, where that matters.",
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="communication",
    after=("ddp-bucket-copy",),
    links=(ddp.DOCUMENTATION,),
    life_cycle="preview",
    origin="torch's DDP documentation (broadcast_buffers)",
    culprit="sending buffers",
)
