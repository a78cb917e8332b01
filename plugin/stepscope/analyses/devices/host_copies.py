"""Copies between host and device, the calls that requested them, and round trips of tensors."""

from collections import deque
from dataclasses import dataclass, fields

import numpy as np

from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class HostCopies:
    """Copies of one direction within the window; all arrays are parallel, in time's order."""

    rows: Ints
    """Rows of `device_events`."""
    start_ns: Ints
    end_ns: Ints
    bytes: Floats
    is_pageable: Mask
    call_start_ns: Ints
    """When the host asked for it; the copy's own start where that was not recorded."""
    call_end_ns: Ints
    owner: Ints
    """The operator that asked for it (`host_calls` row), or -1."""

    def select(self, which: Mask) -> "HostCopies":
        """Return only some of the copies."""
        columns = {field.name: getattr(self, field.name)[which] for field in fields(self)}
        return HostCopies(**columns)

    @property
    def total_bytes(self) -> float:
        """All bytes copied."""
        return float(self.bytes.sum())

    @property
    def on_device(self) -> Intervals:
        """Times in which any of them ran."""
        return intervals.union(self.start_ns, self.end_ns)

    @property
    def on_host(self) -> Intervals:
        """Times in which the host was in the calls that requested them."""
        return intervals.union(self.call_start_ns, self.call_end_ns)

    @property
    def host_ns(self) -> int:
        """Host time in those calls."""
        return intervals.duration_ns(self.on_host)

    @property
    def bytes_per_second(self) -> float:
        """Bytes over the time in which any copy ran; 0 where that is nothing."""
        time_ns = intervals.duration_ns(self.on_device)
        return self.total_bytes * 1e9 / time_ns if time_ns else 0.0


def copies_to_device(trace: Trace, device: DeviceActivity, least_bytes: float = 0) -> HostCopies:
    """Return the host's copies to one device, of at least `least_bytes` each."""
    return _copies(trace, device, "HtoD", least_bytes)


def copies_to_host(trace: Trace, device: DeviceActivity, least_bytes: float = 0) -> HostCopies:
    """Return one device's copies to the host, of at least `least_bytes` each."""
    return _copies(trace, device, "DtoH", least_bytes)


def _copies(trace: Trace, device: DeviceActivity, direction: str, least_bytes: float) -> HostCopies:
    copies, span = trace.copies, window(trace)
    amount = copies["bytes"].fillna(0).to_numpy()
    is_selected = (copies["direction"] == direction).to_numpy() & (amount >= least_bytes)
    is_selected &= (copies["device"] == device.device).to_numpy()
    is_selected &= (copies["end_ns"] > span.device_start_ns).to_numpy()
    is_selected &= (copies["start_ns"] < span.device_end_ns).to_numpy()
    selected = copies[is_selected]
    rows = rows_of_keys(selected["event"].to_numpy(), trace.device_events["event"].to_numpy())
    call = links(trace).call_of_device_event[rows]
    start, end = selected["start_ns"].to_numpy(), selected["end_ns"].to_numpy()
    calls = trace.runtime_calls
    requested_ns = np.where(call >= 0, np.append(calls["start_ns"].to_numpy(), 0)[call], start)
    answered = np.where(call >= 0, np.append(calls["end_ns"].to_numpy(), 0)[call], start)
    return HostCopies(
        rows=rows,
        start_ns=start,
        end_ns=end,
        bytes=amount[is_selected],
        is_pageable=selected["is_pageable"].to_numpy(),
        call_start_ns=requested_ns,
        call_end_ns=answered,
        owner=links(trace).owner_of_device_event[rows],
    )


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


def _batch_of(trace: Trace, at_ns: Ints) -> Ints:
    """Return how many batches a DataLoader had handed over before each moment."""
    ends_ns = trace.host_calls["end_ns"].to_numpy()[data_loading(trace).rows]
    return np.searchsorted(np.sort(ends_ns), at_ns, side="right")


def round_trips(trace: Trace, device: DeviceActivity, least_bytes: int) -> RoundTrips:
    """Pair each copy out with the next copy back of as many bytes.

    Both are requested in the same step, and before the next batch: the copy back would be of that.
    """
    to_host = copies_to_host(trace, device, least_bytes)
    to_device = copies_to_device(trace, device, least_bytes)
    step_out, step_back = (
        list(zip(step_of(trace, at_ns).tolist(), _batch_of(trace, at_ns).tolist(), strict=True))
        for at_ns in (to_host.call_start_ns, to_device.call_start_ns)
    )
    alike: dict[tuple[tuple[int, int], float], deque[int]] = {}
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
