"""Collectives run on the stream that computes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.communication.exposed_collectives import running_times
from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.base.calibration import EXPOSED_COMMUNICATION
from stepscope.base.findings import Fix
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import collective_costs, facts, phrases

NO_STREAM = -1
METHOD = "The collectives of that stream while nothing computed; not all can be hidden."


@dataclass(frozen=True, kw_only=True)
class Options:
    """When it is worth a word that communication and computing share a stream."""

    least_stream_share: float = option(
        0.5,
        "Share of the collectives' time on the stream that computes most.",
        origin="TraceLens; nine of ten public recordings with communication show 0 %, one 100 %",
    )
    least_share: float = option(
        0.02,
        "Share of the window that the collectives of that stream take.",
        origin="ours: less could win next to nothing, since not all of it can be hidden",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report collectives beside which, on their stream, nothing can compute."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    events = collective_costs.timed(trace)
    is_here = _on(events, device) & collective_costs.in_window(trace)
    total_ns = float(events["duration_ns"].to_numpy()[is_here].sum())
    if not total_ns:
        return
    stream = _computing_stream(trace, device)
    chosen = is_here & (events["stream"].to_numpy() == stream)
    on_stream = float(events["duration_ns"].to_numpy()[chosen].sum()) / total_ns
    running_ns = intervals.duration_ns(running_times(trace, chosen))
    running = running_ns / window(trace).reference_ns
    if on_stream < options.least_stream_share or running < options.least_share:
        return
    lost = collective_costs.exposed(trace, chosen)
    mine = events[chosen]
    sent = collective_costs.message_size(mine)
    text = (
        f"{share(on_stream)} of the communication ({count(len(mine), 'collective')}"
        f"{f' of {sent}' if sent else ''}) runs on stream {stream}, where "
        f"{trace.dialect.device} {device.device} computes: for {_lasting(trace, running_ns)} "
        f"({share(running)}) nothing else can run there."
    )
    evidence = (
        facts.fraction("Of communication, on that stream", on_stream),
        facts.fraction("Of the window", running, "overview"),
        facts.fraction("Exposed, of the window", lost.share),
        facts.text("Stream", str(stream)),
    )
    if lost.won_share < INFO_SHARE:
        text += collective_costs.host_is_late(trace, lost)
        yield RuledOut(message=text, evidence=evidence)
        return
    serves = not is_training(trace)
    yield Finding(
        severity="info" if serves else collective_costs.severity(lost),
        confidence="medium",
        message=text,
        evidence=evidence,
        tables=(collective_costs.table(events, chosen),),
        events=collective_costs.longest(trace, events, chosen),
        locations=collective_costs.locations(trace, chosen),
        claims=(collective_costs.claim(lost, EXPOSED_COMMUNICATION, METHOD),),
        fix=_serving_fix() if serves else None,
        effort="day" if serves else None,
    )


def _on(events: pd.DataFrame, device: DeviceActivity) -> collective_costs.Mask:
    is_timed = events["duration_ns"].notna().to_numpy()
    return np.asarray(is_timed & (events["device"].to_numpy() == device.device))


def _computing_stream(trace: Trace, device: DeviceActivity) -> int:
    """Return the stream on which most kernels' time is that are no collectives; -1: unknown."""
    kernels = trace.kernels
    is_computing = ~kernels["is_collective"].to_numpy()
    is_computing &= kernels["device"].to_numpy() == device.device
    place, streams = pd.factorize(kernels["stream"].to_numpy()[is_computing], sort=True)
    if not len(streams):
        return NO_STREAM
    total = sums(kernels["duration_ns"].to_numpy()[is_computing], place, len(streams))
    return int(streams[total.argmax()])


def _lasting(trace: Trace, total_ns: int) -> str:
    return f"{phrases.time(trace, total_ns)}"


def _serving_fix() -> Fix:
    return Fix(
        "Overlap two halves of a batch, or cut the model over fewer devices.",
        "# two micro-batches: one computes while the other communicates\n"
        "# SGLang: --enable-two-batch-overlap; vLLM, experts in parallel: --enable-dbo\n"
        "# or smaller groups with more replicas, where the model fits:\n"
        "# vLLM: --tensor-parallel-size 4 --data-parallel-size 2",
        language="shell",
        verify="Communication in the step's breakdown (Overview) falls.",
        caveats=(
            "For short messages within a machine the library chose this on purpose: on a stream of "
            "its own each would wait for two events.",
        ),
    )


RULE = Rule(
    id="comm-on-compute-stream",
    title="Collectives run on the stream that computes",
    category="communication",
    why="Kernels of one stream run one behind the other. A collective on the stream that computes "
    "can hide nothing of its time, even where what follows does not need its result.",
    detects="The stream of the main device with most kernel time that is no collective's. It "
    "speaks where at least `least_stream_share` of the collectives' time is on it, and they take "
    "at least `least_share` of the window.",
    silent=(
        "With no device, or no collective, it does not apply.",
        "While graphs are captured nothing runs: it cannot tell.",
        "Where nothing else runs on another stream meanwhile because the host has not launched it, "
        "they are listed as harmless.",
        "In inference it is never more than a note: for short messages that is the fastest way.",
    ),
    saving="At most the time of those collectives in which nothing computed and the device was the "
    "limit, at least 30 % of it: what needs the result at once cannot be hidden.",
    fix=Fix(
        "Start collectives asynchronously, and wait for them where the result is needed.",
        "work = dist.all_reduce(tensor, async_op=True)   # on the process group's own stream\n"
        "...                                             # what does not need `tensor`\n"
        "work.wait()",
        verify="In the next recording collectives run on a stream of their own.",
        caveats=("`tensor` must not be written before wait() has returned.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "steps"}),
    priority=220,
    links=(
        "https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations",
    ),
    origin="TraceLens",
    culprit="communication on the computing stream",
)
