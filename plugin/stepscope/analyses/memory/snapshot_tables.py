"""Tables of a memory snapshot: holders by stack, reserved pools, and out-of-memory errors.

Reserved memory is requested bytes, rounding, memory that another stream still uses, and free
memory. Free memory is fragmented as far as its largest piece is smaller than all of it: that piece
is the largest request that needs nothing from the device.
"""

from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.memory.snapshot_history import (
    LiveBlocks,
    histories,
    live_at_end,
    live_at_peak,
)
from stepscope.model.arrays import NONE
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.memory_snapshot import MemorySnapshot
from stepscope.model.table import rows_to_frame

Moment = Literal["end", "peak"]
HOLDERS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("stack", "object", "text", "Who allocated it, `outermost;…;innermost`; None: not"
           " recorded."),
    Column("held_bytes", "int64", "bytes", "Requested bytes, without rounding."),
    Column("held_share", "float64", "share", "Of all that the device's tensors held."),
    Column("allocation_count", "int64", "count", "In so many allocations."),
    Column("largest_bytes", "int64", "bytes", "The largest of them."),
    Column("earlier_bytes", "int64", "bytes", "Of it, allocated before the history begins."),
)  # fmt: skip


def snapshot_holders(snapshot: MemorySnapshot, moment: Moment = "end") -> pd.DataFrame:
    """Return one row per device and stack, in `HOLDERS` columns, the most memory first."""
    tables = []
    for history in histories(snapshot):
        at_end = moment == "end"
        live = live_at_end(snapshot, history.device) if at_end else live_at_peak(snapshot, history)
        tables.append(_holders(snapshot, history.device, live))
    empty = rows_to_frame(HOLDERS, ())
    return pd.concat(tables, ignore_index=True) if tables else empty


def _holders(snapshot: MemorySnapshot, device: int, live: LiveBlocks) -> pd.DataFrame:
    group, stacks = pd.factorize(live.stack)
    groups = pd.DataFrame(
        {
            "bytes": live.bytes,
            "earlier": np.where(live.allocated_at == NONE, live.bytes, 0),
        }
    ).groupby(group, sort=True)
    sums = groups.sum()
    texts = np.array([*snapshot.stacks, None], dtype=object)
    total = int(live.bytes.sum())
    table = pd.DataFrame(
        {
            "device": np.full(len(stacks), device, dtype=np.int64),
            "stack": pd.Series(texts[stacks.astype(np.int64)], dtype=object),
            "held_bytes": sums["bytes"].to_numpy().astype(np.int64),
            "held_share": sums["bytes"].to_numpy().astype(np.float64) / max(1, total),
            "allocation_count": groups.size().to_numpy().astype(np.int64),
            "largest_bytes": groups["bytes"].max().to_numpy().astype(np.int64),
            "earlier_bytes": sums["earlier"].to_numpy().astype(np.int64),
        }
    )
    return table.sort_values("held_bytes", ascending=False, kind="stable").reset_index(drop=True)


POOL_KEYS = ["device", "pool", "size_class", "stream"]
POOLS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("pool", "object", "text", "The memory pool; `0, 0` is the default."),
    Column("size_class", "object", "text", "`small` (blocks up to 1 MiB) or `large`."),
    Column("stream", "int64", "id", "The stream whose allocations it holds."),
    Column("segment_count", "int64", "count", "What was taken from the device in one piece."),
    Column("reserved_bytes", "int64", "bytes", "Taken from the device."),
    Column("requested_bytes", "int64", "bytes", "The part requested by tensors."),
    Column("rounding_bytes", "int64", "bytes", "Given beyond that."),
    Column("pending_bytes", "int64", "bytes", "Freed, but another stream still uses it."),
    Column("free_bytes", "int64", "bytes", "Free."),
    Column("largest_free_bytes", "int64", "bytes", "The largest free piece."),
    Column("free_share", "float64", "share", "Free of reserved."),
    Column("fragmented_share", "float64", "share", "Of free, beyond the largest piece; NaN: no"
           " free."),
)  # fmt: skip


def snapshot_pools(snapshot: MemorySnapshot) -> pd.DataFrame:
    """Return one row per device, pool, size class and stream, the most reserved first."""
    segments = snapshot.segments
    groups = segments.groupby(POOL_KEYS, sort=True)
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
    dtypes = {column.name: column.dtype for column in POOLS}
    table = table[list(dtypes)].astype(dtypes)
    ordered = table.sort_values("reserved_bytes", ascending=False, kind="stable")
    return ordered.reset_index(drop=True)


CAUSES = {
    "fragmented": "So much lay unused in the allocator, but in pieces that were too small, in"
    " another pool, or for another stream.",
    "limited": "The device had so much, but the process was not let have it: another's limit, or"
    " set_per_process_memory_fraction.",
    "full": "Neither the allocator nor the device had so much.",
    "unknown": "The device did not say what it had left.",
}
OOMS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("time_ns", "int64", "ns", "Unix time; -1 before torch 2.1."),
    Column("asked_bytes", "int64", "bytes", "Requested bytes."),
    Column("device_free_bytes", "float64", "bytes", "What the device had left; NaN: not known."),
    Column("requested_bytes", "int64", "bytes", "What tensors held then, without rounding."),
    Column("reserved_bytes", "int64", "bytes", "What the allocator had taken then."),
    Column("unused_bytes", "int64", "bytes", "The part not requested by tensors."),
    Column(
        "cause",
        "object",
        "text",
        " ".join(f"`{name}`: {meaning}" for name, meaning in CAUSES.items()),
    ),
    Column("stack", "object", "text", "Its call stack, outermost first; None: not recorded."),
)


def snapshot_ooms(snapshot: MemorySnapshot) -> pd.DataFrame:
    """Return one row per out-of-memory error, in `OOMS` columns."""
    entries = snapshot.entries
    tables = [rows_to_frame(OOMS, ())]
    texts = np.array([*snapshot.stacks, None], dtype=object)
    for history in histories(snapshot):
        at = np.flatnonzero(entries["action"].to_numpy()[history.rows] == "oom")
        if not len(at):
            continue
        failures = entries.iloc[history.rows[at]]
        requested, left = failures["bytes"].to_numpy(), failures["device_free_bytes"].to_numpy()
        unused = history.reserved_bytes[at] - history.requested_bytes[at]
        conditions = [unused >= requested, left < 0, left >= requested]
        cause = np.select(conditions, ["fragmented", "unknown", "limited"], "full")
        tables.append(
            pd.DataFrame(
                {
                    "device": failures["device"].to_numpy(),
                    "time_ns": failures["time_ns"].to_numpy(),
                    "asked_bytes": requested,
                    "device_free_bytes": np.where(left >= 0, left, np.nan),
                    "requested_bytes": history.requested_bytes[at],
                    "reserved_bytes": history.reserved_bytes[at],
                    "unused_bytes": unused,
                    "cause": pd.Series(cause.astype(object), dtype=object),
                    "stack": pd.Series(texts[failures["stack"].to_numpy()], dtype=object),
                }
            )
        )
    return pd.concat(tables[1:] or tables, ignore_index=True)
