"""Collectives run on the stream that computes."""

from dataclasses import replace

import numpy as np
import pandas as pd

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.exposed_communication import running_times
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.training_detection import is_training
from stepscope.base.calibration import EXPOSED_COMMUNICATION
from stepscope.base.findings import INFO_SHARE
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, facts, phrases

NO_STREAM = -1
METHOD = "The collectives of that stream while nothing computed; not all of it can be hidden."


class Options(Thresholds):
    """Thresholds from which a stream shared by communication and computing is worth reporting."""

    least_stream_share: float = option(
        0.5,
        "Fraction of the collectives' time on the stream that computes most.",
        origin="TraceLens; nine of ten public traces with communication show 0 %, one 100 %",
    )
    least_share: float = option(
        0.02,
        "Fraction of the window in the collectives of that stream.",
        origin="ours: less would save next to nothing, since not all of it can be hidden",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report collectives during which nothing can compute on their stream."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    events = collective_costs.timed(trace)
    duration_ns = events["duration_ns"].to_numpy()
    is_here = ~np.isnan(duration_ns) & (events["device"].to_numpy() == device.device)
    is_here &= collective_costs.in_window(trace)
    total_ns = float(duration_ns[is_here].sum())
    if not total_ns:
        return
    stream = _computing_stream(trace, device)
    mask = is_here & (events["stream"].to_numpy() == stream)
    on_stream = float(duration_ns[mask].sum()) / total_ns
    running_ns = intervals.duration_ns(running_times(trace, mask))
    running = phrases.fraction_of_window(trace, running_ns)
    if on_stream < options.least_stream_share or running < options.least_share:
        return
    lost = collective_costs.exposed(trace, mask)
    sent = collective_costs.message_size(events[mask])
    finding = Finding(
        severity=collective_costs.severity(lost),
        confidence="medium",
        message=f"{share(on_stream)} of the communication ({count(int(mask.sum()), 'collective')}"
        f"{f' of {sent}' if sent else ''}) runs on stream {stream}, where {trace.dialect.device} "
        f"{device.device} computes: for {phrases.time_and_fraction(trace, running_ns)} nothing "
        "else can run there.",
        evidence=(
            facts.fraction("Of communication, on that stream", on_stream),
            facts.fraction("Of the window", running, "overview"),
            facts.fraction("Exposed, of the window", lost.share),
            facts.text("Stream", str(stream)),
        ),
        tables=(collective_costs.table(events, mask),),
        events=collective_costs.longest(trace, events, mask),
        locations=collective_costs.locations(trace, mask),
        claims=(collective_costs.claim(lost, EXPOSED_COMMUNICATION, METHOD),),
    )
    if lost.saved_share < INFO_SHARE:
        text = finding.message + collective_costs.host_is_late(trace, lost)
        yield RuledOut(message=text, evidence=finding.evidence)
    elif is_training(trace):
        yield finding
    else:
        yield replace(finding, severity="info", fix=SERVING_FIX, effort="day")


def _computing_stream(trace: Trace, device: DeviceActivity) -> int:
    """Return the stream with most kernel time besides collectives; -1: unknown."""
    kernels = trace.kernels
    is_computing = ~kernels["is_collective"].to_numpy()
    is_computing &= kernels["device"].to_numpy() == device.device
    group, streams = pd.factorize(kernels["stream"].to_numpy()[is_computing], sort=True)
    if not len(streams):
        return NO_STREAM
    total = sums(kernels["duration_ns"].to_numpy()[is_computing], group, len(streams))
    return int(streams[total.argmax()])


SERVING_FIX = Fix(
    "Overlap two halves of a batch, or split the model over fewer devices.",
    "# two micro-batches: one computes while the other communicates\n"
    "# SGLang: --enable-two-batch-overlap; vLLM, experts in parallel: --enable-dbo\n"
    "# or smaller groups with more replicas, where the model fits:\n"
    "# vLLM: --tensor-parallel-size 4 --data-parallel-size 2",
    language="shell",
    verify="Communication in the step's breakdown (Overview) falls.",
    caveats=(
        "For short messages in a machine the library chose this on purpose: on a separate stream "
        "each would wait for two events.",
    ),
)
RULE = Rule(
    id="comm-on-compute-stream",
    title="Collectives run on the stream that computes",
    passed="Collectives run on streams of their own, or take little time",
    category="communication",
    why="Kernels of one stream run one after the other. A collective on the stream that computes "
    "hides nothing of its time, even where the next kernels do not need its result.",
    detects="The stream of the main device with most kernel time besides collectives. It reports "
    "where at least `least_stream_share` of the collectives' time is on it, and they take at least "
    "`least_share` of the window.",
    silent=(
        "With no device, or no collective, it does not apply.",
        "While graphs are captured nothing runs: it is inconclusive.",
        "Where nothing runs on another stream meanwhile because the host has not launched it, they "
        "are ruled out.",
        "In inference it is never more than info: for short messages this is the fastest way.",
    ),
    saving="At most the time of those collectives in which nothing computed and the device was the "
    "limit, at least 30 % of it: where the result is needed at once, nothing can be hidden.",
    fix=Fix(
        "Start collectives asynchronously, and wait for them where the result is needed.",
        "work = dist.all_reduce(tensor, async_op=True)   # on the process group's stream\n"
        "...                                             # work that does not need `tensor`\n"
        "work.wait()",
        verify="In the next trace collectives run on a separate stream.",
        caveats=("`tensor` must not be written before wait() has returned.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "steps"}),
    priority="communication",
    after=("small-collectives",),
    links=("distributed.html#synchronous-and-asynchronous-collective-operations",),
    origin="TraceLens",
    culprit="communication on the computing stream",
)
