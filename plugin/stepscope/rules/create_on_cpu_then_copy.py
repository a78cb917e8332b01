"""Tensors are made on the CPU and copied to the device right away."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.copy_cost import CreatedCopies, copy_cost, created_copies, first_shape
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Link, severity_of
from stepscope.base.formatting import count, share, significant
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import copy_sources, facts, phrases

LEAST_WITHOUT_STEPS = 5
"""Number in total where the number of steps is unknown."""
FROM_LIST = "aten::lift_fresh"
VERIFY = "No Memcpy HtoD follows the operators listed here."
ARGUMENTS = {
    "arange": "n",
    "linspace": "start, end, n",
    "eye": "n",
    "randperm": "n",
    "full": "{shape}, value",
    "full_like": "x, value",
    "randint": "high, {shape}",
    "randint_like": "x, high",
}
"""Arguments of functions that take more than a shape, or than a tensor for the shape."""
MOST_LINES = 4


class Options(Thresholds):
    """Thresholds from which such tensors are many."""

    least_a_step: float = option(
        1.0,
        "Such tensors per step; without steps, five times as many in total.",
        origin="ours: a single tensor is no pattern; torch's ExtraCUDACopyPattern lists each",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies of tensors that the step has just made on the CPU."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    copies = copy_sources.to_device(trace, device)
    requirements.conclusive_if(
        (copies.owner >= 0).any(),
        "which operators requested the copies was not recorded",
        "profile(activities=[ProfilerActivity.CPU, ...])",
    )
    created = created_copies(trace, copies)
    number = len(created.maker)
    least = options.least_a_step * (window(trace).step_count or LEAST_WITHOUT_STEPS)
    if not number or number < least:
        return
    late, claimed = _cost(trace, device, created)
    lost = phrases.fraction_of_window(trace, intervals.duration_ns(claimed))
    makers = Counter(trace.host_calls["name"].iloc[created.maker].astype(str))
    tables, events, lines = copy_sources.sources(
        trace, created.copies, copy_sources.longest(created.copies)
    )
    is_random = any(name.startswith("aten::rand") for name in makers)
    yield Finding(
        severity=severity_of(lost) or "info",
        confidence="high" if created.is_sure.all() else "medium",
        message=_message(trace, number, makers, lost),
        evidence=(
            facts.count("Tensors made on the CPU in total", number),
            facts.size("Bytes copied in total", created.copies.total_bytes),
            facts.fraction("Idle time for them", lost, "overview"),
            facts.duration("Host time in the copies' calls in total", created.copies.host_ns),
            *(
                facts.count(f"Made by {name} in total", made, Link(view="operators", search=name))
                for name, made in makers.most_common(5)
            ),
        ),
        tables=tables,
        events=events,
        locations=lines,
        claims=_claims(created, late, claimed),
        fix=_fix(makers, _shapes(trace, created), copy_sources.target(trace), is_random=is_random),
        risk="numerics" if is_random else "none",
    )


def _cost(
    trace: Trace, device: DeviceActivity, created: CreatedCopies
) -> tuple[Intervals, Intervals]:
    """Return the idle time while the host makes and moves tensors, and the same with its effects.

    The effects are the copying that no kernel hides and the idle time behind the waits.
    """
    calls = trace.host_calls
    begin, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    making = intervals.union(begin[created.maker], end[created.move])
    times = idle_ledger(trace)[device.device].times
    host_late = intervals.merged(times["dispatch"], times["host-stall"])
    late = intervals.intersection(making, host_late)
    cost = copy_cost(trace, device, created.copies)
    return late, intervals.merged(late, cost.exposed, cost.idle)


def _claims(created: CreatedCopies, late: Intervals, claimed: Intervals) -> tuple[Claim, ...]:
    if not len(claimed):
        return ()
    return (
        Claim(
            claimed,
            HALF_TO_ALL,
            "Idle time while the host makes the tensors and requests the copies, at least half of "
            "which is saved; at most also the copying that no kernel hides and the idle time right "
            "behind the waits for it.",
            low_intervals=late,
            calls=np.concatenate((created.maker, created.move)),
        ),
    )


def _message(trace: Trace, number: int, makers: Counter[str], lost: float) -> str:
    span = window(trace)
    often = f" ({significant(number / span.step_count)} per step)" if span.has_steps else ""
    by = ", ".join(f"{name} {made:,}" for name, made in makers.most_common(3))
    return (
        f"{count(number, 'tensor is', 'tensors are')} made on the CPU and copied to the device "
        f"right away{often}: {by}; for {share(lost)} of the time the device is therefore idle or "
        "only copies."
    )


def _shapes(trace: Trace, created: CreatedCopies) -> dict[str, str]:
    """Return the most frequent shape of each maker's tensors, as Python code."""
    calls = trace.host_calls
    names = calls["name"].iloc[created.maker].astype(str)
    dims = calls["input_dims"].iloc[created.move].astype(str)
    shapes: dict[str, str] = {}
    for (maker, text), _ in Counter(zip(names, dims, strict=True)).most_common():
        shape = first_shape(text)
        if shape is not None and maker not in shapes:
            shapes[maker] = f"({shape[1:-1]})" if "," in shape else shape
    return shapes


def _fix(makers: Counter[str], shapes: Mapping[str, str], target: str, *, is_random: bool) -> Fix:
    """Return the recorded calls, made on the device: `target` is the argument of `.to()`."""
    lines = [
        _line(name, shapes.get(name, "shape"), target) for name, _ in makers.most_common(MOST_LINES)
    ]
    if FROM_LIST in makers:
        lines.append("# a list still has to be copied: make constants once, before the loop")
    generator = "Random numbers then come from the device's generator: others for the same seed."
    caveats = (generator,) if is_random else ()
    return replace(RULE.fix, code="\n".join(lines), caveats=caveats)


def _line(maker: str, shape: str, target: str) -> str:
    name = "tensor" if maker == FROM_LIST else maker.removeprefix("aten::")
    plain = "values" if maker == FROM_LIST else "x" if name.endswith("_like") else "{shape}"
    call = f"torch.{name}({ARGUMENTS.get(name, plain).format(shape=shape)}"
    return f"{call}, device={target})  # not {call}).to({target})"


RULE = Rule(
    id="create-on-cpu-then-copy",
    title="Tensors are made on the CPU and copied to the device",
    passed="Few or no tensors are made on the CPU and copied to the device",
    category="transfer",
    why="The device could fill the tensor itself; instead the host does, requests a copy, and "
    "waits for it where the copy blocks.",
    detects="Copies to the device that an aten::to requests within 200 µs of an operator that "
    "makes a tensor (zeros, ones, full, rand, arange, eye and the like, torch.tensor of a list) of "
    "the same shape, as far as shapes were recorded. It reports from `least_a_step` per step on.",
    silent=(
        "The tensor comes from a DataLoader or from NumPy, or is made from a list and larger than "
        "64 KiB: that is data.",
        "The copies are in a first step that has ten times the copies of any later step: the "
        "program is starting.",
        "The shapes differ, or something else was computed in between.",
    ),
    saving="At most the idle time while the host makes the tensors and requests the copies, the "
    "copying that no kernel hides, and the idle time right behind the waits; at least half of the "
    "idle time while the host makes them and requests the copies.",
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
    priority="synchronization",
    after=("host-device-pingpong",),
    culprit="making tensors on the CPU",
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html#create-tensors-directly-on-the-target-device",
    ),
    origin="torch.profiler ExtraCUDACopyPattern, with the shapes compared; PyTorch tuning guide",
)
