"""Devices wait for communication that no computing hides."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.window import window
from stepscope.base.calibration import EXPOSED_COMMUNICATION
from stepscope.base.findings import Evidence
from stepscope.base.formatting import duration, share
from stepscope.rules import Finding, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, ddp, facts, overlap_fixes, phrases

METHOD = (
    "At most the time in which collectives ran and nothing computed (of a device's, that in which "
    "the host was not the limit); at least 30 % of it."
)

AT_ONCE = (
    " The gradients are so small that DDP sends them when the backward pass ends, and nothing is "
    "left to hide them."
)


class Options(Thresholds):
    """Thresholds from which communication is worth reporting."""

    least_exposed_share: float = option(
        0.05,
        "Fraction of the window in which collectives run and nothing computes.",
        origin="TraceLens: 5 %; xprof reports collectives from 30 % on, which is late",
    )
    least_running_share: float = option(
        0.10,
        "Fraction of the window in which collectives run, from which hidden ones are ruled out.",
        origin="torch-tb-profiler: communication of more than 10 % of a step",
    )
    least_saved_share: float = option(
        0.30,
        "The same of gradients that DDP sends at once when the backward pass ends, from which a "
        "larger batch is worth a warning.",
        origin="xprof: reports collectives from 30 % of the step on",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report collectives by the time in which they ran and nothing computed."""
    events = collective_costs.timed(trace)
    mask = collective_costs.in_window(trace) & events["duration_ns"].notna().to_numpy()
    running_ns = collective_costs.running(trace, mask)
    if not running_ns:
        return
    lost = collective_costs.exposed(trace, mask)
    running = phrases.fraction_of_window(trace, running_ns)
    hidden = 1 - lost.share / running
    evidence = tuple(_evidence(running, hidden, lost))
    tables = (collective_costs.table(events, mask),)
    text = f"Communication takes {phrases.time_and_fraction(trace, running_ns)}"
    if lost.share < options.least_exposed_share:
        if running >= options.least_running_share:
            text += f", of which {share(hidden)} is hidden behind computing."
            yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    worst = _worst(events[mask])
    passes = max(1, ddp.forward_count(trace) or window(trace).step_count)
    origin, fix, effort, risk = overlap_fixes.advice(trace, worst, passes)
    group, sent = collective_costs.group_name(worst), collective_costs.message_size(worst)
    is_all = overlap_fixes.is_sent_at_once(trace, worst, passes)
    is_saved = not is_all or lost.share >= options.least_saved_share
    yield Finding(
        severity=collective_costs.severity(lost) if is_saved else "info",
        confidence="medium",
        message=f"{text}; for {duration(lost.a_step_ns)} of it ({share(lost.share)}) nothing "
        f"computes. Most of that is {worst['kind'].iloc[0]}{f' of {sent}' if sent else ''}"
        f"{f' in {group}' if group else ''}.{AT_ONCE if is_all else ''}"
        f"{collective_costs.host_is_late(trace, lost)}",
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, mask),
        claims=(collective_costs.claim(lost, EXPOSED_COMMUNICATION, METHOD),) if is_saved else (),
        fix=fix,
        effort=effort,
        risk=risk,
        subject=origin,
    )


def _worst(events: pd.DataFrame) -> pd.DataFrame:
    """Return the collectives of the kind, library and group that were exposed longest."""
    number, first = group_statistics.group_rows(events, ("kind", "backend", "group"))
    lost = group_statistics.sums(events["exposed_ns"].to_numpy(np.int64), number, len(first))
    worst: pd.DataFrame = events[number == lost.argmax()]
    return worst


def _evidence(running: float, hidden: float, lost: collective_costs.Exposed) -> Iterator[Evidence]:
    yield facts.fraction("Exposed, of the window", lost.share, "overview")
    yield facts.fraction("Communication, of the window", running, "overview")
    yield facts.fraction("Hidden, of communication", hidden)
    if lost.is_device_work:
        yield facts.fraction("Potential saving, of the window", lost.saved_share)


RULE = Rule(
    id="exposed-communication",
    title="Communication is not hidden behind computing",
    passed="Communication overlaps with computing, or takes little time",
    category="communication",
    judges="communication",
    why="A collective that runs while its device computes costs next to nothing; one during which "
    "nothing computes lengthens the step by its duration. A part of that may be waiting for ranks "
    "that come late.",
    detects="The time in which collectives run and no other kernel does (without a device: no "
    "operator), of the main device and the window. It reports from `least_exposed_share` on, and "
    "names the kind and group with most of it. Vendors' libraries, gloo, and kernels that access "
    "other devices' memory directly all count.",
    silent=(
        "With no collective it does not apply; where only the host's calls were recorded, or "
        "graphs were being captured, it is inconclusive.",
        "Communication of `least_running_share` or more that is hidden is ruled out.",
    ),
    saving="At most the exposed time in which the device, not the host, was the limit; at least 30 "
    "% of it, an estimate. Gradients that DDP sends at once when the backward pass ends cannot "
    "overlap: below `least_saved_share` they are an info without a saving. Over a run's ranks, "
    "waiting for late ranks is counted under "
    "straggler-rank.",
    fix=overlap_fixes.ANY,
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "host calls", "steps"}),
    priority="communication",
    after=("pipeline-bubble",),
    links=("notes/ddp.html", "distributed.fsdp.fully_shard.html"),
    origin="TraceLens; HTA's communication overlap; torch-tb-profiler's fraction of communication",
    culprit="exposed communication",
)
