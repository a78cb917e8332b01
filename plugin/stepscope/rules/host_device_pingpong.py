"""A tensor goes to the host and comes straight back."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.exclusive_device_time import exclusive_device_time
from stepscope.analyses.devices.round_trips import (
    RoundTrips,
    operators_between,
    round_trips,
    step_of,
)
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import ALL_OF_IT, ROUND_TRIP_COPIES
from stepscope.base.findings import Confidence, EventReference, Evidence, Fix
from stepscope.base.formatting import count, duration, share, size
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option, severity_of
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
DELIBERATE = ("offload", "Offload")
"""Offloading libraries move tensors to the host on purpose."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Thresholds of pairs of copies."""

    least_bytes: int = option(
        4096,
        "A tensor's size: smaller ones are scalars and flags, for which `item-sync` answers.",
        origin="ours: the smallest page of memory; no tool looks for round trips",
    )
    least_steps: int = option(
        2,
        "Steps that hold a round trip.",
        origin="ours: once may be an accident, or a validation",
    )
    least_pairs: int = option(
        3,
        "Round trips in total, where they are in one step or there are no steps.",
        origin="ours: in 53 real traces of GPUs there was not one pair of equal size",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report copies to the host that are followed by a copy of as many bytes back, in one step."""
    device = requirements.main_device(trace)
    pairs = round_trips(trace, device, options.least_bytes)
    if not _are_enough(trace, pairs, options):
        return
    span = window(trace)
    times = intervals.clip(pairs.times, span.start_ns, span.device_end_ns)
    lost = intervals.difference(times, device.busy)
    copying = exclusive_device_time(trace, np.concatenate((pairs.out_rows, pairs.back_rows)))
    cost_ns = intervals.duration_ns(lost) + intervals.duration_ns(copying)
    if severity_of(cost_ns / span.reference_ns) is None:
        yield RuledOut(
            message=f"{_message(trace, pairs, lost)} That is next to nothing.",
            evidence=_evidence(pairs, lost, copying),
            events=tuple(_references(trace, pairs)),
        )
        return
    yield Finding(
        confidence=_confidence(trace, pairs),
        message=_message(trace, pairs, lost),
        evidence=_evidence(pairs, lost, copying),
        events=tuple(_references(trace, pairs)),
        locations=event_references.source_lines(_lines(trace, pairs)),
        claims=_claims(trace, device, lost, copying),
        fix=_fix(trace, pairs),
    )


def _message(trace: Trace, pairs: RoundTrips, lost: Intervals) -> str:
    span, number = window(trace), len(pairs.out)
    lost_ns = intervals.duration_ns(lost)
    return (
        f"A tensor of {size(pairs.moved_bytes / number)} (mean) goes to "
        f"the host and comes straight back, {count(number, 'time')} in total; meanwhile the "
        f"{trace.dialect.device} is idle for {duration(span.per_step(lost_ns))}"
        f" {phrases.per_step(trace)} ({share(lost_ns / span.reference_ns)})."
    )


def _evidence(pairs: RoundTrips, lost: Intervals, copying: Intervals) -> tuple[Evidence, ...]:
    return (
        facts.count("Round trips", len(pairs.out)),
        facts.size("Bytes sent out and back", 2 * pairs.moved_bytes),
        facts.duration("Device idle meanwhile", intervals.duration_ns(lost)),
        facts.duration("Copying, and nothing else", intervals.duration_ns(copying)),
    )


def _claims(
    trace: Trace, device: DeviceActivity, lost: Intervals, copying: Intervals
) -> tuple[Claim, ...]:
    sure = intervals.intersection(lost, idle_ledger(trace)[device.device].times["post-sync"])
    return (
        Claim(
            lost,
            ALL_OF_IT,
            "Idle time from asking for the copy out to the end of the copy back.",
            low_intervals=sure,
        ),
        # No work of the device that its queue decides on: the host waits for both copies.
        Claim(
            copying,
            ROUND_TRIP_COPIES,
            "The two copies themselves, where nothing else runs.",
        ),
    )


def _are_enough(trace: Trace, pairs: RoundTrips, options: Options) -> bool:
    steps = np.unique(step_of(trace, pairs.to_host.call_start_ns[pairs.out]))
    return len(steps) >= options.least_steps or len(pairs.out) >= options.least_pairs


def _confidence(trace: Trace, pairs: RoundTrips) -> Confidence:
    """Low for offloading and where the sizes agree by chance; high where one function does both."""
    out = int(pairs.to_host.owner[pairs.out[0]])
    back = int(pairs.to_device.owner[pairs.back[0]])
    names = trace.host_calls["name"].cat.categories
    if any(word in str(name) for name in names for word in DELIBERATE):
        return "low"
    counts = [_element_count(trace, row) for row in (out, back)]
    if None not in counts and counts[0] != counts[1]:
        return "low"
    functions = [_function(event_references.line_of_host_call(trace, row)) for row in (out, back)]
    return "high" if functions[0] and functions[0] == functions[1] else "medium"


def _element_count(trace: Trace, row: int) -> int | None:
    """Return how many elements a call's first input has, if recorded."""
    dims = trace.host_calls["input_dims"].iloc[row] if row >= 0 else None
    try:
        shape = json.loads(dims)[0] if isinstance(dims, str) else None
    except (ValueError, IndexError, KeyError):
        return None
    if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        return None
    return prod(shape)


def _function(line: str) -> str:
    """Return a frame without its line number: `train.py: augment`."""
    return re.sub(r"\(\d+\)", "", line)


def _lines(trace: Trace, pairs: RoundTrips) -> Iterator[str]:
    for out, back in _shown(pairs):
        yield event_references.line_of_host_call(trace, int(pairs.to_host.owner[out]))
        yield event_references.line_of_host_call(trace, int(pairs.to_device.owner[back]))


def _shown(pairs: RoundTrips) -> list[tuple[int, int]]:
    both = zip(pairs.out.tolist(), pairs.back.tolist(), strict=True)
    return list(both)[:MOST_SHOWN]


def _references(trace: Trace, pairs: RoundTrips) -> Iterator[EventReference]:
    devices = trace.device_events["device"].to_numpy()
    for out, back in _shown(pairs):
        line = event_references.line_of_host_call(trace, int(pairs.to_host.owner[out]))
        start = int(pairs.to_host.call_start_ns[out])
        end = int(pairs.to_device.end_ns[back])
        yield EventReference(
            name=f"{size(float(pairs.to_host.bytes[out]))} out and back",
            track=f"{trace.dialect.device} {int(devices[pairs.to_host.rows[out]])}",
            start_ns=start,
            duration_ns=end - start,
            detail=line,
        )


def _fix(trace: Trace, pairs: RoundTrips) -> Fix:
    between = operators_between(trace, pairs)
    module = trace.dialect.terms.get("module", "accelerator")
    what = f" Here the host does {', '.join(between)} in between." if between else ""
    return replace(
        RULE.fix,
        summary=f"{RULE.fix.summary}{what}",
        code=RULE.fix.code.replace(".to(device)", f'.to("{module}")'),
    )


RULE = Rule(
    id="host-device-pingpong",
    title="A tensor goes to the CPU and comes straight back",
    category="transfer",
    why="The host must wait for the device to finish, copy, compute on a few cores, and copy back, "
    "while the device is idle.",
    detects="Copies to the host of at least `least_bytes` that are followed, in the same step, by "
    "a copy of exactly as many bytes back. It reports where such pairs lie in `least_steps` steps, "
    "or there are `least_pairs` in total, and where they cost 1 % of the window.",
    silent=(
        "A copy back in the next step is a new batch.",
        "Where the numbers of elements differ, equal sizes are chance: confidence is low.",
        "Libraries that offload tensors move them on purpose: confidence is low.",
        "Where the round trips cost less than 1 %, they are listed as ruled out.",
    ),
    saving="The idle time from asking for the copy out to the end of the copy back, of which that "
    "behind the wait for the first copy is sure; beside it the time of the two copies themselves, "
    "0.75 of it at least, since the device has to do what the host did.",
    fix=Fix(
        "Keep it on the device: torch has the operation.",
        "# instead of: y = operation(x.cpu()).to(device)\n"
        "y = operation(x)              # the same operation runs where x is\n"
        "index = torch.nonzero(mask)   # and torch.where, torch.unique, … for NumPy's",
        verify="In the next trace no copy to the host is left inside the step.",
        caveats=(
            "Equal sizes may be chance: look at the pairs.",
            "If it cannot stay on the device, do it once in several steps.",
        ),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority=80,
    links=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    origin="The HPC tutorials' NumPy in forward; no other tool looks for it",
    culprit="sending tensors to the host and back",
)
