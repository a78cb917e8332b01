"""Out-of-memory errors in the trace, and the unused memory at them.

torch records `[OutOfMemory]` with the requested size and the allocator's totals
(`torch/csrc/profiler/collection.h`, `ExtraFields<EventType::OutOfMemory>`). The allocator has then
already returned unused segments to the device and tried again (`CUDACachingAllocator.cpp`).
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import enclosing_operator
from stepscope.analyses.memory.memory_devices import REMEDY
from stepscope.base.errors import MissingDataError
from stepscope.dialects import MEMORY_DEVICES
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import THREAD, Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

NAME = "[OutOfMemory]"
CAUSES = {
    "fragmented": "So much was reserved and unused, but in pieces that were too small.",
    "full": "Not so much was reserved and unused, and the device had no more to give.",
    "unknown": "The totals, or what was asked for, were not recorded.",
}
SCHEMA: Schema = (
    Column("event", "int64", "id", "The event's place in the file."),
    Column("time_ns", "int64", "ns", "When, from the trace's first event."),
    THREAD,
    Column("device_type", "object", "text", "`CUDA`, `HIP`, … (c10::DeviceType)."),
    Column("device", "int64", "id", "The allocator's number of the device."),
    Column("asked_bytes", "int64", "bytes", "What was asked for; -1: not recorded."),
    Column("allocated_bytes", "float64", "bytes", "Allocated then (torch); NaN: not known."),
    Column("reserved_bytes", "float64", "bytes", "Reserved then (torch); NaN: not known."),
    Column("unused_bytes", "float64", "bytes", "Reserved then and not allocated."),
    Column(
        "cause",
        "object",
        "text",
        " ".join(f"`{name}`: {meaning}" for name, meaning in CAUSES.items()),
    ),
    Column("operator", "object", "text", "The innermost operator that asked; None: none ran."),
)


@public_table(
    "memory-ooms",
    SCHEMA,
    "One row each time that memory ran out: what was asked for, and what lay unused.",
    title="Out of memory",
)
@computed
def memory_ooms(trace: Trace) -> pd.DataFrame:
    """Return one row per out-of-memory error, in `SCHEMA` columns, by time.

    Raises:
        MissingDataError: no memory was recorded, so that nobody can tell.
    """
    source, rows = trace.source, _rows(trace)
    if not len(rows) and not len(trace.memory):
        reason = "no memory was recorded"
        raise MissingDataError(reason, REMEDY)
    requested = source.whole("Bytes", rows)
    allocated, reserved = (
        source.number(f"Total {what}", rows) for what in ("Allocated", "Reserved")
    )
    unused = reserved - allocated
    types = [
        MEMORY_DEVICES.get(code, f"type {code}")
        for code in source.whole("Device Type", rows).tolist()
    ]
    is_unknown = np.isnan(unused) | (requested < 0)
    cause = np.select([is_unknown, unused >= requested], ["unknown", "fragmented"], "full")
    time_ns = source.columns.start_ns[rows]
    moments = pd.DataFrame({"thread": source.thread(rows), "start_ns": time_ns, "end_ns": time_ns})
    names = trace.host_calls["name"].cat
    code = np.append(names.codes.to_numpy(), NONE)[enclosing_operator(trace, moments)]
    operator = np.array([*names.categories, None], dtype=object)[code]
    return pd.DataFrame(
        {
            "event": rows,
            "time_ns": time_ns,
            "thread": moments["thread"],
            "device_type": pd.Series(types, dtype=object),
            "device": source.whole("Device Id", rows),
            "asked_bytes": requested,
            "allocated_bytes": allocated,
            "reserved_bytes": reserved,
            "unused_bytes": unused,
            "cause": pd.Series(cause.astype(object), dtype=object),
            "operator": pd.Series(operator, dtype=object),
        }
    )


def _rows(trace: Trace) -> Ints:
    columns = trace.columns
    code = columns.strings.index(NAME) if NAME in columns.strings else NONE - 1
    rows = np.flatnonzero((columns.name == code) & (columns.start_ns != NO_TIME))
    return rows[np.argsort(columns.start_ns[rows], kind="stable")]
