"""A tensor goes to the host and comes straight back."""

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses import references, requirements
from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_device, copies_to_host
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.steps.window import window
from stepscope.calibration import ALL_OF_IT
from stepscope.intervals import Intervals
from stepscope.quantities import count, duration, share, size
from stepscope.report import Confidence, EventReference, Evidence, Fix
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.trace import Trace

DELIBERATE = ("offload", "Offload")
"""Offloading libraries move tensors to the host on purpose."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which pairs of copies count, and how many it takes."""

    least_bytes: int = option(
        4096, "Smaller tensors are scalars and flags: `item-sync` answers for those.", origin=""
    )
    least_steps: int = option(
        2, "Steps that hold a pair: once may be an accident, or a validation.", origin=""
    )
    least_pairs: int = option(
        3, "Pairs in all, where they are in one step or there are no steps.", origin=""
    )
    shown_count: int = option(10, "How many events are named.", origin="", is_threshold=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pairs:
    to_host: HostCopies
    to_device: HostCopies
    out: NDArray[np.int64]
    """Indices into `to_host`."""
    back: NDArray[np.int64]
    """Indices into `to_device`, parallel to `out`."""

    @property
    def times(self) -> Intervals:
        """From asking for the copy out to the end of the copy back."""
        return intervals.union(
            self.to_host.call_start_ns[self.out], self.to_device.end_ns[self.back]
        )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report copies to the host that are followed by a copy of as many bytes back, in one step."""
    device = requirements.main(trace)
    pairs = _pairs(trace, device, options)
    if not _are_enough(trace, pairs, options):
        return
    within = window(trace)
    lost = intervals.difference(
        intervals.clip(pairs.times, within.start_ns, within.device_end_ns), device.busy
    )
    lost_ns = intervals.duration_ns(lost)
    moved = float(pairs.to_host.bytes[pairs.out].sum())
    events = tuple(_references(trace, pairs, options.shown_count))
    yield Finding(
        confidence=_confidence(trace, pairs),
        severity=None if lost_ns >= 0.01 * within.reference_ns else "info",
        message=(
            f"A tensor of {size(moved / len(pairs.out))}{' (mean)' if len(pairs.out) > 1 else ''} "
            f"goes to the host and comes straight back, {count(len(pairs.out), 'time')} in all; "
            "meanwhile "
            f"the device stands still for {duration(within.per_step(lost_ns))}"
            f"{' a step' if within.has_steps else ''} "
            f"({share(lost_ns / within.reference_ns)})."
        ),
        evidence=(
            Evidence(label="Round trips", value=len(pairs.out), unit="count"),
            Evidence(label="Bytes sent out and back", value=2 * moved, unit="bytes"),
            Evidence(label="Device idle meanwhile", value=lost_ns, unit="ns"),
        ),
        events=events,
        claims=(
            Claim(
                intervals=lost,
                factor=ALL_OF_IT,
                low_intervals=intervals.intersection(
                    lost, idle_ledger(trace)[device.device].times["post-sync"]
                ),
                method="Time from asking for the copy out to the end of the copy back, less busy time.",
            ),
        ),
    )


def _step_of(trace: Trace, at_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(trace.steps["start_ns"].to_numpy(), at_ns, side="right")


def _pairs(trace: Trace, device: DeviceActivity, options: Options) -> _Pairs:
    """Pair each copy out with the next copy back of as many bytes, asked for in the same step."""
    to_host = copies_to_host(trace, device, options.least_bytes)
    to_device = copies_to_device(trace, device, options.least_bytes)
    step_out = _step_of(trace, to_host.call_start_ns).tolist()
    step_back = _step_of(trace, to_device.call_start_ns).tolist()
    alike: dict[tuple[int, float], deque[int]] = {}
    for place, (step, amount) in enumerate(zip(step_back, to_device.bytes.tolist(), strict=True)):
        alike.setdefault((step, amount), deque()).append(place)
    start_back = to_device.start_ns.tolist()
    out, back = [], []
    for place, (step, amount, end) in enumerate(
        zip(step_out, to_host.bytes.tolist(), to_host.end_ns.tolist(), strict=True)
    ):
        later = alike.get((step, amount), deque())
        while later and start_back[later[0]] < end:
            later.popleft()  # too early for this copy, and so for all that follow
        if later:
            out.append(place)
            back.append(later.popleft())
    return _Pairs(
        to_host=to_host,
        to_device=to_device,
        out=np.array(out, dtype=np.int64),
        back=np.array(back, dtype=np.int64),
    )


def _are_enough(trace: Trace, pairs: _Pairs, options: Options) -> bool:
    if not len(trace.steps):
        return len(pairs.out) >= options.least_pairs
    steps = np.unique(_step_of(trace, pairs.to_host.call_start_ns[pairs.out]))
    return len(steps) >= options.least_steps or len(pairs.out) >= options.least_pairs


def _confidence(trace: Trace, pairs: _Pairs) -> Confidence:
    """Low for offloading and where the sizes agree by chance; high where one function does both."""
    out = int(pairs.to_host.owner[pairs.out[0]])
    back = int(pairs.to_device.owner[pairs.back[0]])
    names = trace.host_calls["name"].cat.categories
    if any(word in str(name) for name in names for word in DELIBERATE):
        return "low"
    counts = [_element_count(trace, row) for row in (out, back)]
    if None not in counts and counts[0] != counts[1]:
        return "low"
    functions = [_function(references.line_of_host_call(trace, row)) for row in (out, back)]
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


def _references(trace: Trace, pairs: _Pairs, shown: int) -> Iterator[EventReference]:
    devices = trace.device_events["device"].to_numpy()
    for out, back in list(zip(pairs.out.tolist(), pairs.back.tolist(), strict=True))[:shown]:
        line = references.line_of_host_call(trace, int(pairs.to_host.owner[out]))
        start = int(pairs.to_host.call_start_ns[out])
        end = int(pairs.to_device.end_ns[back])
        yield EventReference(
            name=f"{size(float(pairs.to_host.bytes[out]))} out and back",
            track=f"{trace.dialect.device} {int(devices[pairs.to_host.rows[out]])}",
            start_ns=start,
            duration_ns=end - start,
            detail=line,
        )


RULE = Rule(
    id="host-device-pingpong",
    title="A tensor goes to the CPU and comes straight back",
    category="transfer",
    why=(
        "The host must wait for the device to finish, copy, compute on a few cores, and copy "
        "back, while the device stands still."
    ),
    fix=Fix(
        summary="Keep it on the device: torch has the operation.",
        code=(
            "# instead of: index = torch.from_numpy(np.argwhere(mask.cpu().numpy())).cuda()\n"
            "index = torch.nonzero(mask)\n"
            "# and torch.where, torch.scatter, torch.unique, torch.sort, … instead of NumPy's"
        ),
        verify="No copy to the host is left inside the step.",
        caveats=(
            "Equal sizes may be chance: look at the pairs.",
            "If it cannot stay on the device, do it once in several steps.",
        ),
    ),
    detects="",
    saving="",
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority=80,
    links=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    origin="The HPC tutorials' NumPy in forward; no other tool looks for it",
)
