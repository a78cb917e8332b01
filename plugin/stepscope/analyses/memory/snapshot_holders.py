"""Who holds a snapshot's memory, by stack: at its end, and when most was held before it."""

from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.memory.snapshot_history import (
    NONE,
    Held,
    held_at_end,
    held_at_peak,
    histories,
)
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.memory_snapshot import MemorySnapshot

Moment = Literal["end", "peak"]
SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column(
        "stack", "object", "text", "Who allocated it, `outermost;…;innermost`; None: not recorded."
    ),
    Column("held_bytes", "int64", "bytes", "What was asked for, without rounding."),
    Column("held_share", "float64", "share", "Of all that the device's tensors held."),
    Column("allocation_count", "int64", "count", "In so many allocations."),
    Column("largest_bytes", "int64", "bytes", "The largest of them."),
    Column("earlier_bytes", "int64", "bytes", "Of it, allocated before the history begins."),
)


def snapshot_holders(snapshot: MemorySnapshot, moment: Moment = "end") -> pd.DataFrame:
    """Return one row a device and stack, in `SCHEMA` columns, the most memory first."""
    tables = []
    for history in histories(snapshot):
        at_end = moment == "end"
        held = held_at_end(snapshot, history.device) if at_end else held_at_peak(snapshot, history)
        tables.append(_table(snapshot, history.device, held))
    empty = pd.DataFrame({column.name: pd.Series(dtype=column.dtype) for column in SCHEMA})
    return pd.concat(tables, ignore_index=True) if tables else empty


def _table(snapshot: MemorySnapshot, device: int, held: Held) -> pd.DataFrame:
    group, stacks = pd.factorize(held.stack)
    each = pd.DataFrame(
        {
            "bytes": held.bytes,
            "earlier": np.where(held.allocated_at == NONE, held.bytes, 0),
        }
    ).groupby(group, sort=True)
    sums = each.sum()
    texts = np.array([*snapshot.stacks, None], dtype=object)
    total = int(held.bytes.sum())
    table = pd.DataFrame(
        {
            "device": np.full(len(stacks), device, dtype=np.int64),
            "stack": pd.Series(texts[stacks.astype(np.int64)], dtype=object),
            "held_bytes": sums["bytes"].to_numpy().astype(np.int64),
            "held_share": sums["bytes"].to_numpy().astype(np.float64) / max(1, total),
            "allocation_count": each.size().to_numpy().astype(np.int64),
            "largest_bytes": each["bytes"].max().to_numpy().astype(np.int64),
            "earlier_bytes": sums["earlier"].to_numpy().astype(np.int64),
        }
    )
    return table.sort_values("held_bytes", ascending=False, kind="stable").reset_index(drop=True)
