"""Why a device ran out of memory: what was asked for, what was left, and what lay unused."""

import numpy as np
import pandas as pd

from stepscope.analyses.memory.snapshot_history import histories
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.memory_snapshot import MemorySnapshot

CAUSES = {
    "fragmented": "So much lay unused in the allocator, but in pieces that were too small, in"
    " another pool, or for another stream.",
    "limited": "The device had so much, but the process was not let have it: another's limit, or"
    " set_per_process_memory_fraction.",
    "full": "Neither the allocator nor the device had so much.",
    "unknown": "The device did not say what it had left.",
}
SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("time_ns", "int64", "ns", "Unix time; -1 before torch 2.1."),
    Column("asked_bytes", "int64", "bytes", "What was asked for."),
    Column("device_free_bytes", "float64", "bytes", "What the device had left; NaN: not known."),
    Column("requested_bytes", "int64", "bytes", "What tensors held then, without rounding."),
    Column("reserved_bytes", "int64", "bytes", "What the allocator had taken then."),
    Column("unused_bytes", "int64", "bytes", "Of it, not asked for by tensors."),
    Column(
        "cause",
        "object",
        "text",
        " ".join(f"`{name}`: {meaning}" for name, meaning in CAUSES.items()),
    ),
    Column("stack", "object", "text", "Who asked for it, outermost first; None: not recorded."),
)


def snapshot_ooms(snapshot: MemorySnapshot) -> pd.DataFrame:
    """Return one row a time that a device ran out of memory, in `SCHEMA` columns."""
    entries = snapshot.entries
    tables = [pd.DataFrame({column.name: pd.Series(dtype=column.dtype) for column in SCHEMA})]
    texts = np.array([*snapshot.stacks, None], dtype=object)
    for history in histories(snapshot):
        at = np.flatnonzero(entries["action"].to_numpy()[history.rows] == "oom")
        if not len(at):
            continue
        own = entries.iloc[history.rows[at]]
        asked, left = own["bytes"].to_numpy(), own["device_free_bytes"].to_numpy()
        unused = history.reserved_bytes[at] - history.requested_bytes[at]
        conditions = [unused >= asked, left < 0, left >= asked]
        cause = np.select(conditions, ["fragmented", "unknown", "limited"], "full")
        tables.append(
            pd.DataFrame(
                {
                    "device": own["device"].to_numpy(),
                    "time_ns": own["time_ns"].to_numpy(),
                    "asked_bytes": asked,
                    "device_free_bytes": np.where(left >= 0, left, np.nan),
                    "requested_bytes": history.requested_bytes[at],
                    "reserved_bytes": history.reserved_bytes[at],
                    "unused_bytes": unused,
                    "cause": pd.Series(cause.astype(object), dtype=object),
                    "stack": pd.Series(texts[own["stack"].to_numpy()], dtype=object),
                }
            )
        )
    return pd.concat(tables[1:] or tables, ignore_index=True)
