"""Tensors are made on the CPU and copied to the device right away."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.copy_cost import copy_cost
from stepscope.analyses.idle.created_copies import CreatedCopies, created_copies, first_shape
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Fix, Link
from stepscope.base.formatting import count, share, significant
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuleResult, option, severity_of
from stepscope.rules.shared import copy_sources, facts
from stepscope.rules.shared.created_fixes import VERIFY, fix, risk

LEAST_WITHOUT_STEPS = 5
"""In all, where it is not known how many steps there are."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How many it takes."""

    least_a_step: float = option(
        1.0,
        "Such tensors a step; without steps, five times as many in all.",
        origin="ours: what is made once is no pattern; torch's ExtraCUDACopyPattern lists each",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report copies of tensors that the step has just made on the CPU."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    copies = copy_sources.to_device(trace, device)
    if not (copies.owner >= 0).any():
        msg = "which operators asked for the copies was not recorded"
        raise MissingDataError(msg, "profile(activities=[ProfilerActivity.CPU, ...])")
    created = created_copies(trace, copies)
    within = window(trace)
    number = len(created.maker)
    least = options.least_a_step * (within.step_count or LEAST_WITHOUT_STEPS)
    if not number or number < least:
        return
    late, claimed = _cost(trace, device, created)
    lost = intervals.duration_ns(claimed) / within.reference_ns
    makers = _makers(trace, created)
    tables, events, lines = copy_sources.sources(
        trace, created.copies, copy_sources.longest(created.copies)
    )
    yield Finding(
        severity=severity_of(lost) or "info",
        confidence="high" if created.is_sure.all() else "medium",
        message=_message(trace, number, makers, lost),
        evidence=(
            facts.count("Tensors made on the CPU", number),
            facts.size("Bytes copied", created.copies.total_bytes),
            facts.fraction("Idle time for them", lost, "overview"),
            facts.duration("Host time in the copies' calls", created.copies.host_ns),
            *(
                facts.count(f"Made by {name}", times, Link(view="operators", search=name))
                for name, times in makers.most_common(5)
            ),
        ),
        tables=tables,
        events=events,
        locations=lines,
        claims=_claims(late, claimed),
        fix=fix(makers, _shapes(trace, created), copy_sources.target(trace)),
        risk=risk(makers),
    )


def _makers(trace: Trace, created: CreatedCopies) -> Counter[str]:
    return Counter(trace.host_calls["name"].iloc[created.maker].astype(str))


def _cost(
    trace: Trace, device: DeviceActivity, created: CreatedCopies
) -> tuple[Intervals, Intervals]:
    """Return the idle time while the host makes and moves them, and that with what is behind it.

    At most the copying that no kernel hides and the idle time behind the waits is won too.
    """
    calls = trace.host_calls
    begin, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    making = intervals.union(begin[created.maker], end[created.move])
    times = idle_ledger(trace)[device.device].times
    host_late = intervals.merged(times["dispatch"], times["host-stall"])
    late = intervals.intersection(making, host_late)
    cost = copy_cost(trace, device, created.copies)
    return late, intervals.merged(late, cost.exposed, cost.idle)


def _claims(late: Intervals, claimed: Intervals) -> tuple[Claim, ...]:
    if not len(claimed):
        return ()
    return (
        Claim(
            claimed,
            HALF_TO_ALL,
            "Idle time while the host makes the tensors and asks for the copies, of which half is "
            "won at least; at most also the copying that no kernel hides and the idle time right "
            "behind the waits for it.",
            low_intervals=late,
        ),
    )


def _message(trace: Trace, number: int, makers: Counter[str], lost: float) -> str:
    within = window(trace)
    each = f" ({significant(number / within.step_count)} a step)" if within.has_steps else ""
    by = ", ".join(f"{name} {times:,}" for name, times in makers.most_common(3))
    made = count(number, "tensor is", "tensors are")
    return (
        f"{made} made on the CPU and copied to the device right away{each}: {by}; the device "
        f"stands still or only copies for {share(lost)} of the time on account of that."
    )


def _shapes(trace: Trace, created: CreatedCopies) -> dict[str, str]:
    """Return the shape that each maker's tensors have most often, as Python writes it."""
    calls = trace.host_calls
    names = calls["name"].iloc[created.maker].astype(str)
    dims = calls["input_dims"].iloc[created.move].astype(str)
    shapes: dict[str, str] = {}
    for (maker, text), _ in Counter(zip(names, dims, strict=True)).most_common():
        shape = first_shape(text)
        if shape is not None and maker not in shapes:
            shapes[maker] = f"({shape[1:-1]})" if "," in shape else shape
    return shapes


RULE = Rule(
    id="create-on-cpu-then-copy",
    title="Tensors are made on the CPU and copied to the device",
    category="transfer",
    why="The device could fill the tensor itself; instead the host does, asks for a copy, and "
    "waits for it where it blocks.",
    detects="Copies to the device that an aten::to asks for within 200 µs of an operator that "
    "makes a tensor (zeros, ones, full, rand, arange, eye and their kin, torch.tensor of a list) "
    "of the same shape, as far as shapes were recorded. It speaks from `least_a_step` a step on.",
    silent=(
        "The tensor comes from a DataLoader or from NumPy, or is made from a list and larger than "
        "64 kB: that is data.",
        (
            "The copies lie in a first step that has ten times the copies of any later one: the "
            "program is starting."
        ),
        "The shapes differ, or something else was computed in between.",
    ),
    saving="At most the idle time while the host makes the tensors and asks for the copies, the "
    "copying that no kernel hides, and the idle time right behind the waits; at least half of the "
    "idle time while the host makes them and asks.",
    fix=Fix(
        "Make them on the device.",
        "x = torch.zeros(shape, device=device)  # not torch.zeros(shape).to(device)",
        verify=VERIFY,
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority=90,
    culprit="making tensors on the CPU",
    links=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
        "#create-tensors-directly-on-the-target-device",
    ),
    origin="torch.profiler ExtraCUDACopyPattern, with the shapes compared; PyTorch tuning guide",
)
