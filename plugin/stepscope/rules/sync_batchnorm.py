"""Batch norms agree on their statistics over all ranks."""

from collections.abc import Iterator

from stepscope.analyses.communication.accumulation import IN_BATCH_NORM
from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.core import requirements
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.window import window
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import INFO_SHARE, Evidence, Link
from stepscope.base.formatting import duration, share
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases

FORWARD = "SyncBatchNorm"
METHOD = (
    "Messages of SyncBatchNorm while nothing computed, at least half: late ranks are then waited "
    "for elsewhere."
)


class Options(Thresholds):
    """Threshold of synchronized batch norms."""

    least_a_step: float = option(
        20.0,
        "Synchronized batch norms per step (in total, where there are no steps).",
        origin="msprof-analyze: 20 SyncBatchNorm per step",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report SyncBatchNorm by the exposed time of its messages."""
    rows = ddp.calls(trace, FORWARD)
    requirements.applies_if(len(rows), "no SyncBatchNorm ran")
    events = collective_costs.timed(trace)
    a_step = len(rows) / max(1, window(trace).step_count)
    if a_step < options.least_a_step:
        return
    is_batch_norm = requested_in_calls(trace, IN_BATCH_NORM) & collective_costs.in_window(trace)
    lost = collective_costs.exposed(trace, is_batch_norm)
    text = (
        f"{a_step:.3g} synchronized batch norms {phrases.per_step(trace)} send "
        f"{int(is_batch_norm.sum()) / max(1, window(trace).step_count):.3g} messages, exposed for "
        f"{duration(lost.a_step_ns)} ({share(lost.share)})."
    )
    evidence = tuple(_evidence(trace, a_step, lost))
    tables = (collective_costs.table(events, is_batch_norm),)
    if lost.saved_share < INFO_SHARE:
        text += collective_costs.host_is_late(trace, lost)
        yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    yield Finding(
        severity=collective_costs.severity(lost),
        confidence="medium",
        message=text,
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, is_batch_norm),
        claims=(collective_costs.claim(lost, HALF_TO_ALL, METHOD),),
    )


def _evidence(trace: Trace, a_step: float, lost: collective_costs.Exposed) -> Iterator[Evidence]:
    link = Link(view="operators", search=FORWARD)
    label = f"Synchronized batch norms {phrases.per_step(trace)}"
    yield facts.count(label, a_step, link)
    yield facts.fraction("Exposed, of the window", lost.share)
    batch = batch_size(trace)
    if batch is not None:
        yield facts.count("Samples of this rank's batch", batch.size)


RULE = Rule(
    id="sync-batchnorm",
    title="Batch norms wait for all ranks",
    passed="Batch norms do not wait for other ranks",
    category="communication",
    why="SyncBatchNorm gathers every layer's statistics from all ranks in the forward pass, and "
    "reduces two sums in the backward pass. What follows needs them at once: nothing hides these "
    "messages, and every rank waits for the latest at every layer.",
    detects="At least `least_a_step` calls of SyncBatchNorm per step, and the collectives "
    "requested within them and their backward. It reports where those are exposed for 1 % of the "
    "window or more.",
    silent=(
        "Without SyncBatchNorm it does not apply.",
        "Messages that cost less than 1 % of the window are listed as ruled out.",
    ),
    saving="Half to all of the messages' exposed time, where the device is the limit: without "
    "them the ranks wait for late ranks elsewhere.",
    fix=Fix(
        "Normalize over each rank's own samples, or not over the batch at all.",
        "model = DDP(model)  # without SyncBatchNorm.convert_sync_batchnorm(model)\n"
        "# or, where a rank has too few samples for statistics of its own:\n"
        "norm = nn.GroupNorm(32, channels)",
        verify="The next trace has no SyncBatchNorm in Operators.",
        caveats=(
            "With fewer than some 16 samples a rank, statistics are noisy: that is what "
            "SyncBatchNorm is for. Compare the accuracy.",
        ),
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="communication",
    after=("comm-on-compute-stream",),
    links=("generated/torch.nn.SyncBatchNorm.html",),
    life_cycle="preview",
    origin="msprof-analyze (SyncBatchNorm)",
    culprit="SyncBatchNorm",
)
