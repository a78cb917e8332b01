"""What each call allocated and gave back, as torch's `key_averages()` counts it.

An event of the allocator counts for every call in whose time it falls, both ends included, on
whatever thread (`torch/autograd/profiler_util.py`, `MemRecordsAcc.in_interval`): what the autograd
engine's threads allocate while a range of the main thread waits for them is that range's. Which
single operator an event belongs to is another question: see `memory/owners.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.model.trace import Trace, computed

HOST_DEVICE_TYPES = (0, 2, 5)
"""CPU, MKLDNN and IDEEP of `c10::DeviceType`, as in `_cpu_memory_usage`; all others are devices."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorMemory:
    """Bytes allocated less bytes given back; all arrays are parallel to `host_calls`."""

    host_self_bytes: NDArray[np.int64]
    """Without calls within."""
    host_total_bytes: NDArray[np.int64]
    device_self_bytes: NDArray[np.int64]
    device_total_bytes: NDArray[np.int64]


@computed
def operator_memory(trace: Trace) -> OperatorMemory | None:
    """Return what every operator and annotation allocated; None: memory was not recorded."""
    memory = trace.memory
    if not len(memory):
        return None
    amounts = memory["bytes"].to_numpy()
    is_host = np.isin(memory["device_type_code"].to_numpy(), HOST_DEVICE_TYPES)
    calls = trace.host_calls
    times = memory["start_ns"].to_numpy()
    first = np.searchsorted(times, calls["start_ns"].to_numpy(), side="left")
    behind = np.searchsorted(times, calls["end_ns"].to_numpy(), side="right")
    parent = calls["parent"].to_numpy()
    found = {}
    for kind, chosen in (("host", is_host), ("device", ~is_host)):
        total = np.zeros(len(calls), dtype=np.int64)
        if chosen.any():
            before = np.append(0, np.cumsum(np.where(chosen, amounts, 0)))
            total = before[behind] - before[first]
        found[f"{kind}_total_bytes"] = total
        found[f"{kind}_self_bytes"] = _without_children(total, parent)
    return OperatorMemory(**found)


def _without_children(total: NDArray[np.int64], parent: NDArray[np.int64]) -> NDArray[np.int64]:
    own = total.copy()
    children = np.flatnonzero((parent >= 0) & (total != 0))
    np.subtract.at(own, parent[children], total[children])
    return own
