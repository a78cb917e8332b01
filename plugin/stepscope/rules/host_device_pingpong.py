"""A tensor is copied to the host and straight back to the device."""

import json
import re
from collections.abc import Iterator
from math import prod

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.devices.host_copies import (
    RoundTrips,
    operators_between,
    round_trips,
    step_of,
)
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import ALL_OF_IT, ROUND_TRIP_COPIES
from stepscope.base.findings import Confidence, EventReference, severity_of
from stepscope.base.formatting import count, size
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
DELIBERATE = ("offload", "Offload")
"""Offloading libraries move tensors to the host on purpose."""


class Options(Thresholds):
    """Thresholds of pairs of copies."""

    least_bytes: int = option(
        4096,
        "A tensor's size: smaller ones are scalars and flags, which `item-sync` reports.",
        origin="ours: the smallest page of memory; no other tool checks for round trips",
    )
    least_steps: int = option(
        2,
        "Steps that contain a round trip.",
        origin="ours: once may be an accident, or a validation",
    )
    least_pairs: int = option(
        3,
        "Round trips in total, where they are in one step or there are no steps.",
        origin="ours: in 53 real traces of GPUs there was not one pair of equal size",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies to the host that are followed by a copy of as many bytes back, in one step."""
    device = requirements.main_device(trace)
    pairs, span = round_trips(trace, device, options.least_bytes), window(trace)
    number, total_bytes = len(pairs.out), pairs.moved_bytes
    steps = np.unique(step_of(trace, pairs.to_host.call_start_ns[pairs.out]))
    if len(steps) < options.least_steps and number < options.least_pairs:
        return
    times = intervals.clip(pairs.times, span.device_start_ns, span.device_end_ns)
    lost = intervals.difference(times, device.busy)
    copying = exclusive_device_time(trace, np.concatenate((pairs.out_rows, pairs.back_rows)))
    lost_ns, copying_ns = intervals.duration_ns(lost), intervals.duration_ns(copying)
    message = (
        f"A tensor of {size(total_bytes / number)} (mean) is copied to the host and straight back, "
        f"{count(number, 'time')} in total; meanwhile {phrases.device(trace)} is idle for "
        f"{phrases.time_and_fraction(trace, lost_ns)}."
    )
    sure = intervals.intersection(lost, idle_ledger(trace)[device.device].times["post-sync"])
    references = tuple(_references(trace, pairs))
    finding = Finding(
        confidence=_confidence(trace, pairs),
        message=message,
        evidence=(
            facts.count("Round trips in total", number),
            facts.size("Bytes sent out and back in total", 2 * total_bytes),
            facts.duration("Device idle meanwhile in total", lost_ns),
            facts.duration("Copying that nothing hides in total", copying_ns),
        ),
        events=references,
        locations=event_references.source_lines(_lines(trace, pairs)),
        claims=(
            Claim(
                lost,
                ALL_OF_IT,
                "Idle time from the request of the copy out to the end of the copy back.",
                low_intervals=sure,
            ),
            # Not device work that its queue decides on: the host waits for both copies.
            Claim(
                copying, ROUND_TRIP_COPIES, "The two copies themselves, where nothing else runs."
            ),
        ),
        fix=_fix(trace, pairs),
    )
    is_costly = severity_of((lost_ns + copying_ns) / span.reference_ns) is not None
    yield finding if is_costly else finding.ruled_out(f"{message} That costs less than 1 %.")


def _confidence(trace: Trace, pairs: RoundTrips) -> Confidence:
    """Low for offloading and where the sizes agree by chance; high where one function does both."""
    rows = int(pairs.to_host.owner[pairs.out[0]]), int(pairs.to_device.owner[pairs.back[0]])
    names = trace.host_calls["name"].cat.categories
    if any(word in str(name) for name in names for word in DELIBERATE):
        return "low"
    counts = [_element_count(trace, row) for row in rows]
    if None not in counts and counts[0] != counts[1]:
        return "low"
    lines = [event_references.line_of_host_call(trace, row) for row in rows]
    functions = {re.sub(r"\(\d+\)", "", line) for line in lines}  # without line numbers
    return "high" if len(functions) == 1 and all(functions) else "medium"


def _element_count(trace: Trace, row: int) -> int | None:
    """Return the number of elements of a call's first input, if recorded."""
    dims = trace.host_calls["input_dims"].iloc[row] if row >= 0 else None
    try:
        shape = json.loads(dims)[0] if isinstance(dims, str) else None
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        return None
    return prod(shape)


def _lines(trace: Trace, pairs: RoundTrips) -> Iterator[str]:
    for out, back in _shown(pairs):
        yield event_references.line_of_host_call(trace, int(pairs.to_host.owner[out]))
        yield event_references.line_of_host_call(trace, int(pairs.to_device.owner[back]))


def _shown(pairs: RoundTrips) -> list[tuple[int, int]]:
    return list(zip(pairs.out.tolist(), pairs.back.tolist(), strict=True))[:MOST_SHOWN]


def _references(trace: Trace, pairs: RoundTrips) -> Iterator[EventReference]:
    devices = trace.device_events["device"].to_numpy()
    for out, back in _shown(pairs):
        start_ns = int(pairs.to_host.call_start_ns[out])
        yield EventReference(
            name=f"{size(float(pairs.to_host.bytes[out]))} out and back",
            track=f"{trace.dialect.device} {int(devices[pairs.to_host.rows[out]])}",
            start_ns=start_ns,
            duration_ns=int(pairs.to_device.end_ns[back]) - start_ns,
            detail=event_references.line_of_host_call(trace, int(pairs.to_host.owner[out])),
        )


def _fix(trace: Trace, pairs: RoundTrips) -> Fix:
    between = operators_between(trace, pairs)
    module = trace.dialect.terms.get("module", "accelerator")
    work = f" In between, the host runs {', '.join(between)}." if between else ""
    return replace(
        RULE.fix,
        summary=f"{RULE.fix.summary}{work}",
        code=RULE.fix.code.replace(".to(device)", f'.to("{module}")'),
    )


RULE = Rule(
    id="host-device-pingpong",
    title="A tensor is copied to the CPU and straight back",
    passed="No tensor makes a round trip through the CPU",
    category="transfer",
    why="The host must wait for the device to finish, copy, compute on a few cores, and copy back, "
    "while the device is idle.",
    detects="Copies to the host of at least `least_bytes` that are followed, in the same step and "
    "before the next batch, by a copy of exactly as many bytes back. It reports where there are "
    "such pairs in `least_steps` steps, or `least_pairs` in all, and they cost 1 % of the window.",
    silent=(
        "A copy back in the next step, or after the next batch of a DataLoader, is of that batch.",
        "Where the numbers of elements differ, equal sizes are chance: confidence is low.",
        "Libraries that offload tensors move them on purpose: confidence is low.",
        "Round trips that cost less than 1 % are listed as ruled out.",
    ),
    saving="At most the idle time from the request of the copy out to the end of the copy back, "
    "at least the part after the wait for the first copy. In addition the time of the two copies "
    "themselves: at least 0.75 of it, since the device then does the host's work.",
    fix=Fix(
        "Keep it on the device: torch has the operation.",
        "# instead of: y = operation(x.cpu()).to(device)\n"
        "y = operation(x)              # the same operation runs where x is\n"
        "index = torch.nonzero(mask)   # and torch.where, torch.unique, … for NumPy's",
        verify="In the next trace no copy to the host is left inside the step.",
        caveats=(
            "Equal sizes may be chance: check the pairs.",
            "If it cannot stay on the device, do it once in several steps.",
        ),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority="synchronization",
    links=("/tutorials/recipes/recipes/tuning_guide.html",),
    origin="The HPC tutorials' NumPy in forward; no other tool checks for it",
    culprit="sending tensors to the host and back",
)
