"""Tensors that go to the host and come straight back: pairs of copies of equal size in one step."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_device, copies_to_host
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

MOVES = frozenset({"aten::to", "aten::_to_copy", "aten::copy_", "aten::empty_strided"})
"""Operators that only move data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundTrips:
    """Copies out, each with the copy back."""

    to_host: HostCopies
    to_device: HostCopies
    out: Ints
    """Indices into `to_host`."""
    back: Ints
    """Indices into `to_device`, parallel to `out`."""

    @property
    def out_rows(self) -> Ints:
        """Rows of `device_events`: the copies out."""
        return self.to_host.rows[self.out]

    @property
    def back_rows(self) -> Ints:
        """Rows of `device_events`: the copies back."""
        return self.to_device.rows[self.back]

    @property
    def moved_bytes(self) -> float:
        """Bytes of one way."""
        return float(self.to_host.bytes[self.out].sum())

    @property
    def times(self) -> Intervals:
        """From asking for the copy out to the end of the copy back."""
        return intervals.union(
            self.to_host.call_start_ns[self.out], self.to_device.end_ns[self.back]
        )


def step_of(trace: Trace, at_ns: Ints) -> Ints:
    """Return the number, from 1, of the step that each moment is in; 0 before the first."""
    return np.searchsorted(trace.steps["start_ns"].to_numpy(), at_ns, side="right")


def round_trips(trace: Trace, device: DeviceActivity, least_bytes: int) -> RoundTrips:
    """Pair each copy out with the next copy back of as many bytes, requested in the same step."""
    to_host = copies_to_host(trace, device, least_bytes)
    to_device = copies_to_device(trace, device, least_bytes)
    step_out = step_of(trace, to_host.call_start_ns).tolist()
    step_back = step_of(trace, to_device.call_start_ns).tolist()
    alike: dict[tuple[int, float], deque[int]] = {}
    for index, (step, amount) in enumerate(zip(step_back, to_device.bytes.tolist(), strict=True)):
        alike.setdefault((step, amount), deque()).append(index)
    start_back = to_device.start_ns.tolist()
    out, back = [], []
    for index, (step, amount, end) in enumerate(
        zip(step_out, to_host.bytes.tolist(), to_host.end_ns.tolist(), strict=True)
    ):
        later = alike.get((step, amount), deque())
        while later and start_back[later[0]] < end:
            later.popleft()  # too early for this copy, and so for all that follow
        if later:
            out.append(index)
            back.append(later.popleft())
    return RoundTrips(
        to_host=to_host,
        to_device=to_device,
        out=np.array(out, dtype=np.int64),
        back=np.array(back, dtype=np.int64),
    )


def operators_between(trace: Trace, pairs: RoundTrips) -> tuple[str, ...]:
    """Return the host's operators between the copies of the first pair, the longest first."""
    calls = trace.host_calls
    begin = int(pairs.to_host.call_end_ns[pairs.out[0]])
    until = int(pairs.to_device.call_start_ns[pairs.back[0]])
    inside = (calls["start_ns"] >= begin) & (calls["end_ns"] <= until) & calls["is_operator"]
    calls_inside = calls[inside.to_numpy()].sort_values(
        "duration_ns", ascending=False, kind="stable"
    )
    names = calls_inside["name"].astype(str)
    return tuple(dict.fromkeys(name for name in names if name not in MOVES))[:3]
