"""Many small copies to the device, each with the cost of a call."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.synchronizations import outermost_operator
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.analyses.idle.copy_cost import CopyCost, copy_cost
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence, Link
from stepscope.base.formatting import count, share, significant, size
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import copy_sources, facts, phrases

UNIT_NS = 100_000_000
"""Without steps, copies are counted in so much of the window."""
VERIFY = "Under this rule, the next trace counts fewer copies per step."


class Options(Thresholds):
    """Thresholds of size, number and idle time."""

    below_bytes: int = option(
        64_000,
        "Size of one copy below which it is small.",
        origin="ours: below it, the time on the bus is less than that of the call (PCIe)",
    )
    least_count: float = option(
        10.0,
        "Small copies per step; without steps, in 100 ms.",
        origin="TraceLens reports from more than 10 transfers on",
    )
    least_share: float = option(
        0.01,
        "Fraction of the window in idle time that they cause.",
        origin="ours: below 1 % no rule reports",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report small copies by the idle time in their calls and behind waits for them."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    copies = copy_sources.to_device(trace, device)
    has_bytes = copies.bytes > 0
    copies = copies.select(has_bytes & (copies.bytes < options.below_bytes))
    often = _how_often(trace, copies)
    if often < options.least_count:
        return
    cost = copy_cost(trace, device, copies)
    lost = intervals.duration_ns(cost.idle) / window(trace).reference_ns
    evidence = tuple(_evidence(copies, cost, often, lost))
    if lost < options.least_share:
        yield RuledOut(
            message=f"{_copied(trace, copies, often)}, but {_idle(trace, cost, lost)}.",
            evidence=evidence,
        )
        return
    tables, events, lines = copy_sources.sources(trace, copies, copy_sources.longest(copies))
    yield Finding(
        message=f"{_copied(trace, copies, often)}; {_idle(trace, cost, lost)}.",
        evidence=evidence,
        tables=tables,
        events=events,
        locations=lines,
        claims=(
            Claim(
                cost.idle,
                HALF_TO_ALL,
                "Idle time while the host is in the copies' calls, and at most also right behind "
                "its waits for them; one copy instead of many saves half at least.",
                low_intervals=cost.late,
                calls=_all_but_one(trace, copies),
            ),
        ),
        fix=_fix(significant(often), copy_sources.target(trace)),
    )


def _all_but_one(trace: Trace, copies: HostCopies) -> Ints:
    """Return the operators of all copies but the last one of each step, or of all."""
    step = np.searchsorted(np.sort(trace.steps["start_ns"].to_numpy()), copies.call_start_ns)
    is_followed = np.append(step[:-1] == step[1:], False)[: len(step)]
    operators = outermost_operator(trace, copies.owner[is_followed])
    return np.unique(operators[operators >= 0])


def _how_often(trace: Trace, copies: HostCopies) -> float:
    span = window(trace)
    units = span.step_count or max(1.0, span.reference_ns / UNIT_NS)
    return len(copies.rows) / units


def _copied(trace: Trace, copies: HostCopies, often: float) -> str:
    number = count(len(copies.rows), "small copy goes", "small copies go")
    mean = size(copies.total_bytes / len(copies.rows))
    unit = "per step" if window(trace).has_steps else "in 100 ms"
    return f"{number} to the device ({significant(often)} {unit}, {mean} on average)"


def _idle(trace: Trace, cost: CopyCost, lost: float) -> str:
    idle_ns = intervals.duration_ns(cost.idle)
    if not idle_ns:
        return "the device is not idle because of them"
    lasting = phrases.time(trace, idle_ns)
    return f"the device is idle for {lasting} ({share(lost)}) because of them"


def _evidence(copies: HostCopies, cost: CopyCost, often: float, lost: float) -> Iterator[Evidence]:
    yield facts.count("Small copies", len(copies.rows))
    yield facts.count("A step, or in 100 ms", often)
    yield facts.size("Bytes copied", copies.total_bytes)
    overview = Link(view="overview")
    yield facts.fraction("Idle time for them", lost, overview)
    late_ns, behind_ns = intervals.duration_ns(cost.late), intervals.duration_ns(cost.behind)
    yield facts.duration("Idle in their calls", late_ns)
    yield facts.duration("Idle behind waits for them", behind_ns)
    yield facts.duration("Host time in their calls", copies.host_ns)


def _fix(often: str, target: str) -> Fix:
    """Return what to do instead of so many copies per step; `target` is what `.to()` takes."""
    return Fix(
        "Pack what belongs together into one tensor, and copy that.",
        f"# one copy per step in place of {often}\n"
        "packed = torch.cat([value.flatten() for value in small])  # of one dtype, pinned\n"
        f"packed = packed.to({target}, non_blocking=True)\n"
        "small = packed.split([value.numel() for value in small])\n"
        "# what never changes: copy it once, before the loop (register_buffer in a module)",
        verify=VERIFY,
        caveats=(
            "Values of several types are packed one type at a time, or as bytes (view(dtype)).",
            "What is made in the loop is better made on the device.",
        ),
    )


RULE = Rule(
    id="many-small-h2d-copies",
    title="Many small copies go to the device",
    passed="Copies to the device are few or large",
    category="transfer",
    why="A copy of a few bytes costs the host as much as a large one: the call, the operators "
    "around it, and the wait for it where it blocks.",
    detects="Copies to the device of less than `below_bytes`. It reports from `least_count` per "
    "step on (without steps, in 100 ms) where the device is idle for `least_share` of the window "
    "because of them: while the host is in their calls, or right after its waits for them.",
    silent=(
        "The device has work queued meanwhile: then they cost no time and are listed as ruled out.",
        "The copies are in a first step that has ten times the copies of any later step: the "
        "model is being loaded.",
        "Graphs are being captured: their work was recorded, not run.",
    ),
    saving="At most the idle time while the host is in their calls and right after its waits for "
    "them; at least half of the former.",
    fix=_fix("many", copy_sources.ANY_DEVICE),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority="synchronization",
    after=("pageable-h2d-copy",),
    culprit="copying small tensors to the device one by one",
    links=(copy_sources.TUTORIAL,),
    origin='TraceLens memcpy gate; xprof "combine small chunks"',
)
