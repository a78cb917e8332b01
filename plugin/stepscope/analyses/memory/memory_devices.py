"""Devices with memory events, by c10's device type and the allocator's number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints
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
