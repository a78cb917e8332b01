"""DDP sends the model's buffers before every forward."""

import numpy as np

from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import ALL_OF_IT, HALF_TO_ALL
from stepscope.base.findings import Evidence, severity_of
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases, recorded_facts
from stepscope.rules.shared.claimable_time import claimed_ns

BUCKET_SIZES_TYPE = "int32"
"""Data type of DDP's one broadcast after it has reordered its buckets (reducer.cpp)."""
METHOD = (
    "Broadcasts of buffers while nothing computed, at least half: where a rank comes late, the "
    "others wait for it later instead."
)

FORWARD = "DistributedDataParallel.forward"
PACKING = frozenset(
    {
        "aten::flatten_dense_tensors",
        "c10d::broadcast_",
        "aten::unflatten_dense_tensors",
        "aten::copy_",
    }
)
"""Operators of DDP's forward by which it sends buffers, before the model's."""
PACKING_METHOD = "The host's work to pack, send and unpack them, while no device worked."


class Options(Thresholds):
    """Thresholds from which broadcasts are worth reporting."""

    least_share: float = option(
        0.005,
        "Fraction of the window that would be saved without broadcasts of buffers.",
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
    claims = _claims(trace, lost)
    lost_ns = intervals.duration_ns(intervals.merged(*(claim.intervals for claim in claims)))
    saved = claimed_ns(trace, claims) / window(trace).reference_ns
    sent = collective_costs.message_size(events[mask]) or "of unknown size"
    text = f"{count(int(mask.sum()), 'broadcast')} of buffers ({sent}) in DDP's forward"
    evidence: tuple[Evidence, ...] = (
        facts.count("Broadcasts in total", int(mask.sum())),
        facts.fraction("Exposed, of the window", lost.share),
    )
    if setting is not None:
        evidence += (recorded_facts.evidence("broadcast_buffers", str(setting), "code"),)
    tables = (collective_costs.table(events, mask),)
    if saved < options.least_share:
        late = collective_costs.host_is_late(trace, lost)
        message = f"{text} take {share(lost.share)} of the time.{late}"
        yield RuledOut(message=message, evidence=evidence, tables=tables)
        return
    yield Finding(
        severity=severity_of(saved) or "info",
        confidence="medium",
        message=f"{text} cost {phrases.time_and_fraction(trace, lost_ns)}.",
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, mask),
        claims=claims,
    )


def _claims(trace: Trace, lost: collective_costs.Exposed) -> tuple[Claim, Claim]:
    packing = intervals.difference(_packing(trace), lost.times)
    return (
        collective_costs.claim(lost, HALF_TO_ALL, METHOD),
        Claim(packing, ALL_OF_IT, PACKING_METHOD),
    )


def _packing(trace: Trace) -> Intervals:
    """Return the times from the begin of DDP's forward to the end of its work on buffers.

    That is before the model's first operator.
    """
    calls, forwards = trace.host_calls, ddp.calls(trace, FORWARD)
    start_ns, end_ns = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    is_forward = np.zeros(len(calls) + 1, dtype=bool)
    is_forward[forwards] = True
    children = np.flatnonzero(is_forward[calls["parent"].to_numpy()])
    owner = np.searchsorted(forwards, calls["parent"].to_numpy()[children])
    is_packing = name_mask(calls["name"], PACKING.__contains__)[children]
    model_ns = end_ns[forwards].copy()
    np.minimum.at(model_ns, owner[~is_packing], start_ns[children[~is_packing]])
    is_before = is_packing & (start_ns[children] < model_ns[owner])
    until_ns = start_ns[forwards].copy()
    np.maximum.at(until_ns, owner[is_before], end_ns[children[is_before]])
    times = intervals.merged(np.column_stack((start_ns[forwards], until_ns)))
    return intervals.difference(times, all_busy(trace))


RULE = Rule(
    id="ddp-buffer-broadcast",
    title="DDP sends all buffers before every forward",
    passed="DDP broadcasts no buffers that cost time",
    category="communication",
    why="By default DistributedDataParallel sends rank 0's buffers (mostly the running statistics "
    "of batch norms) to all ranks at the start of every forward. Nothing can compute until they "
    "have arrived, and every rank waits there for the latest.",
    detects="Broadcasts requested in DistributedDataParallel.forward, while nothing computed, and "
    "the host's work before and after them. It reports where `least_share` of the window or more "
    "could be saved.",
    silent=(
        "With no DistributedDataParallel, or no collective at all, it does not apply.",
        "The one broadcast with which DDP orders its buckets sends no buffer, and with "
        "broadcast_buffers recorded as False none does.",
        "Broadcasts that take next to no time, or during which the host has not yet launched the "
        "next work, are ruled out.",
    ),
    saving="Half to all of the exposed time: where a rank comes late, the others wait for it in "
    "the gradients' all-reduces instead. In addition, the host's work in DDP's forward to pack, "
    "send and unpack the buffers.",
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
    origin="torch's DDP documentation (broadcast_buffers)",
    culprit="sending buffers",
)
