"""How a snapshot's reserved memory is used, by device, pool and stream; where it is fragmented.

Reserved memory is what was asked for, what rounding added, what another stream still uses, and
what is free. Free memory is fragmented as far as its largest piece is smaller than all of it: that
piece is the largest request that needs nothing from the device.
"""

import numpy as np
import pandas as pd

from stepscope.model.frames import Column, Schema
from stepscope.model.frames.memory_snapshot import MemorySnapshot

KEYS = ["device", "pool", "size_class", "stream"]
SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("pool", "object", "text", "The memory pool; `0, 0` is the default."),
    Column("size_class", "object", "text", "`small` (blocks up to 1 MB) or `large`."),
    Column("stream", "int64", "id", "The stream whose allocations it holds."),
    Column("segment_count", "int64", "count", "What was taken from the device in one piece."),
    Column("reserved_bytes", "int64", "bytes", "Taken from the device."),
    Column("requested_bytes", "int64", "bytes", "Of it, asked for by tensors."),
    Column("rounding_bytes", "int64", "bytes", "Given beyond that."),
    Column("pending_bytes", "int64", "bytes", "Freed, but another stream still uses it."),
    Column("free_bytes", "int64", "bytes", "Free."),
    Column("largest_free_bytes", "int64", "bytes", "The largest free piece."),
    Column("free_share", "float64", "share", "Free of reserved."),
    Column(
        "fragmented_share", "float64", "share", "Of free, beyond the largest piece; NaN: no free."
    ),
)


def snapshot_pools(snapshot: MemorySnapshot) -> pd.DataFrame:
    """Return one row a device, pool, size class and stream, the most reserved first."""
    segments = snapshot.segments
    groups = segments.groupby(KEYS, sort=True)
    names = ["total_bytes", "allocated_bytes", "pending_bytes", "requested_bytes"]
    sums = groups[names].sum()
    reserved, allocated = sums["total_bytes"], sums["allocated_bytes"]
    free = reserved - allocated - sums["pending_bytes"]
    largest = groups["largest_free_bytes"].max()
    table = pd.DataFrame(
        {
            "segment_count": groups.size().astype(np.int64),
            "reserved_bytes": reserved,
            "requested_bytes": sums["requested_bytes"],
            "rounding_bytes": allocated - sums["requested_bytes"],
            "pending_bytes": sums["pending_bytes"],
            "free_bytes": free,
            "largest_free_bytes": largest,
            "free_share": free / reserved.where(reserved > 0),
            "fragmented_share": 1 - largest / free.where(free > 0),
        }
    ).reset_index()
    dtypes = {column.name: column.dtype for column in SCHEMA}
    table = table[list(dtypes)].astype(dtypes)
    ordered = table.sort_values("reserved_bytes", ascending=False, kind="stable")
    return ordered.reset_index(drop=True)
