"""Devices with memory events, and each one's pairs of allocation and release.

An allocation is paired with the next event of its device and address if that releases as many
bytes. The bytes allocated are the sum of the pairs, of live memory at the end of the trace, and of
allocations that cannot be paired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import rows_to_frame
from stepscope.model.trace import Trace, computed

CPU = 0
MOST_BYTES = 2**44
"""A single allocation of 16 TiB is damaged; no file has enough smaller ones to overflow 64 bits."""
MOST_DEVICES = 64
"""Further devices are damaged data."""
DEVICE_COLUMNS: Schema = (
    Column("device_type", "category", "text", "`CPU`, `CUDA`, `HIP`, … (c10::DeviceType)."),
    Column("device", "int64", "id", "The allocator's number of the device; -1 on the CPU."),
)
REMEDY = "torch.profiler.profile(..., profile_memory=True)"


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryDevice:
    """One device's memory events."""

    type: str
    """`CPU`, `CUDA`, `HIP`, … (c10::DeviceType)."""
    type_code: int
    number: int
    """The allocator's number, which under `HIP_VISIBLE_DEVICES` is not the kernels'; CPU: -1."""
    rows: Ints
    """Rows of `Trace.memory` that allocate or free on this device, by time."""

    @property
    def label(self) -> str:
        """Return the display name: `CPU`, `CUDA 0`."""
        return self.type if self.number < 0 else f"{self.type} {self.number}"


@computed
def memory_devices(trace: Trace) -> tuple[MemoryDevice, ...]:
    """Return every device that has memory events, by type and number.

    Events of 0 bytes and of absurd sizes are left out.


    Raises:
        MissingDataError: the trace has no memory events.
    """
    memory = trace.memory
    if not len(memory):
        reason = "no memory was recorded"
        raise MissingDataError(reason, REMEDY)
    type_code, number = (memory[name].to_numpy() for name in ("device_type_code", "device"))
    type_code_index, types = pd.factorize(type_code, sort=True)
    number_index, numbers = pd.factorize(number, sort=True)
    key = type_code_index * len(numbers) + number_index
    size = memory["bytes"].to_numpy()
    rows = np.flatnonzero((size != 0) & (size > -MOST_BYTES) & (size < MOST_BYTES))
    rows = rows[np.argsort(key[rows], kind="stable")]
    keys, first, counts = np.unique(key[rows], return_index=True, return_counts=True)
    busiest = np.sort(np.argsort(-counts, kind="stable")[:MOST_DEVICES])
    labels = memory["device_type"].astype(object).to_numpy()
    return tuple(
        MemoryDevice(
            type=str(labels[rows[first[at]]]),
            type_code=int(types[keys[at] // len(numbers)]),
            number=int(numbers[keys[at] % len(numbers)]),
            rows=rows[first[at] : first[at] + counts[at]],
        )
        for at in busiest.tolist()
    )


def device_columns(
    devices: tuple[MemoryDevice, ...], counts: list[int]
) -> dict[str, pd.Categorical | Ints]:
    """Return the `DEVICE_COLUMNS` for a number of rows per device."""
    types = sorted({device.type for device in devices})
    codes = np.array([types.index(device.type) for device in devices], dtype=np.int64)
    numbers = np.array([device.number for device in devices], dtype=np.int64)
    return {
        "device_type": pd.Categorical.from_codes(
            np.repeat(codes, counts), categories=pd.Index(types, dtype=object)
        ),
        "device": np.repeat(numbers, counts),
    }


def device_rows(
    schema: Schema, devices: tuple[MemoryDevice, ...], figures: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Return one row of figures per device, after its `DEVICE_COLUMNS`."""
    columns = device_columns(devices, [1] * len(devices))
    return pd.DataFrame({**columns, **rows_to_frame(schema[len(DEVICE_COLUMNS) :], figures)})


FREED, HELD, EARLIER, LOST, UNKNOWN = range(5)
STATES = {
    "freed": "Allocated and freed while recording.",
    "held": "Allocated while recording and not freed until its end.",
    "earlier": "Freed while recording, allocated before.",
    "lost": "Its address was given out again, or freed with another size: a record is missing.",
    "unknown": "No address was recorded (torch before 1.10): it cannot be paired.",
}
"""By code; each row of the pairing is in exactly one state."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """One device's allocations; arrays are parallel, by the time of each first event."""

    device: MemoryDevice
    bytes: Ints
    """Above 0."""
    allocated_at: Ints
    """Row of `memory`; -1 where the allocation was not recorded."""
    freed_at: Ints
    """Row of `memory`; -1 where the release was not recorded."""
    freed_by: Ints
    """First row at which it is certainly freed: its release, or the next use of its address; one
    past the last row where it lives to the end or nothing shows it."""
    state: NDArray[np.int8]


@computed
def memory_pairs(trace: Trace) -> tuple[Pairs, ...]:
    """Return the pairing of each device, in the order of `memory_devices`.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    return tuple(_pairs(trace, device) for device in memory_devices(trace))


def _pairs(trace: Trace, device: MemoryDevice) -> Pairs:
    rows = device.rows
    size = trace.memory["bytes"].to_numpy()[rows]
    address = trace.memory["address"].to_numpy()[rows]
    order = np.argsort(address, kind="stable")
    at, size, address = rows[order], size[order], address[order]
    is_same_next = np.append(address[1:] == address[:-1], False) & (address != NONE)
    next_size = np.append(size[1:], 0)
    is_freed_next = is_same_next & (size > 0) & (next_size == -size)
    is_partner = np.append(False, is_freed_next[:-1])
    state = np.select(
        [is_freed_next, address == NONE, size < 0, is_same_next],
        [FREED, UNKNOWN, EARLIER, LOST],
        HELD,
    )
    next_at = np.append(at[1:], NONE)
    ended = np.where(is_same_next, next_at, len(trace.memory))
    first = np.flatnonzero(~is_partner)
    first = first[np.argsort(at[first], kind="stable")]
    is_release = size[first] < 0
    return Pairs(
        device=device,
        bytes=np.abs(size[first]),
        allocated_at=np.where(is_release, NONE, at[first]),
        freed_at=np.where(is_release, at[first], np.where(is_freed_next, next_at, NONE)[first]),
        freed_by=np.where(is_release, at[first], ended[first]),
        state=state[first].astype(np.int8),
    )
