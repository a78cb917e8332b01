"""Allocations and releases of torch's allocators, with `profile_memory`."""

from operator import attrgetter

import numpy as np
import pandas as pd

from stepscope.dialects import MEMORY_DEVICES, Kind
from stepscope.model.frames import THREAD, Column, Schema
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

SCHEMA: Schema = (
    Column("event", "int64", "id", "Index of the event in the file."),
    Column("start_ns", "int64", "ns", "Time, from the trace's first event."),
    THREAD,
    Column("bytes", "int64", "bytes", "Allocated; negative: freed."),
    Column("address", "int64", "id", "Address; -1 in traces of torch 1.8."),
    Column("device_type", "category", "text", "`CPU`, `CUDA`, `HIP`, … (c10::DeviceType)."),
    Column("device_type_code", "int64", "id", "The number in c10::DeviceType."),
    Column("device", "int64", "id", "The device's number as the allocator has it; -1 on the CPU."),
    Column("allocated_bytes", "float64", "bytes", "Total allocated after it; NaN before torch"
           " 1.10."),
    Column("reserved_bytes", "float64", "bytes", "Total reserved after it; NaN before torch 1.10."),
)  # fmt: skip


def build(source: Source) -> pd.DataFrame:
    """Return one row per allocation or release, in `SCHEMA` columns, by time."""
    rows = source.rows(Kind.MEMORY)
    device_type = source.whole("Device Type", rows)
    codes, index = np.unique(device_type, return_inverse=True)
    names = [MEMORY_DEVICES.get(int(code), f"type {code}") for code in codes]
    return pd.DataFrame(
        {
            "event": rows,
            "start_ns": source.columns.start_ns[rows],
            "thread": source.thread(rows),
            "bytes": source.whole("Bytes", rows),
            "address": source.whole("Addr", rows),
            "device_type": pd.Categorical.from_codes(
                index, categories=pd.Index(names, dtype=object)
            ),
            "device_type_code": device_type,
            "device": source.whole("Device Id", rows),
            "allocated_bytes": source.number("Total Allocated", rows),
            "reserved_bytes": source.number("Total Reserved", rows),
        },
        copy=False,
    )


public_table(
    "memory-events",
    SCHEMA,
    "One row per allocation or release by torch, as `profile_memory=True` records.",
)(attrgetter("memory"))
