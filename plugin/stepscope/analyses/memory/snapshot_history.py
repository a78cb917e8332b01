"""History of a memory snapshot: level, peak, and live memory at the peak.

The history holds changes (`torch.cuda.memory._record_memory_history`), the snapshot the memory at
the end. Levels are computed backwards from the end, so they are exact even for a partial history.
Sizes are the requested ones: the allocator's history leaves out rounding
(`c10/cuda/CUDACachingAllocator.cpp`, `record_trace`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.memory_snapshot import MemorySnapshot

ALLOCATE, RELEASE, RELEASE_DONE = "alloc", "free_requested", "free_completed"
RESERVE, UNRESERVE = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")
SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("time_ns", "int64", "ns", "Unix time; -1 before torch 2.1."),
    Column("action", "object", "text", "What the allocator did, in torch's words."),
    Column("requested_bytes", "int64", "bytes", "Held by tensors behind it, without rounding."),
    Column("reserved_bytes", "int64", "bytes", "Taken from the device behind it."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """One device's history; arrays are parallel to `rows`."""

    device: int
    rows: Ints
    """Rows of `MemorySnapshot.entries`, in order."""
    requested_bytes: Ints
    reserved_bytes: Ints
    start_requested_bytes: int
    """Before the first entry."""
    start_reserved_bytes: int
    peak_at: int
    """Index of the entry after which most was allocated; -1: before the first."""
    peak_bytes: int
    most_reserved_bytes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveBlocks:
    """Live allocations of a device at one moment."""

    bytes: Ints
    stack: Ints
    """Numbers of stacks; -1 where not recorded."""
    allocated_at: Ints
    """Rows of `entries`; -1: before the history."""


def histories(snapshot: MemorySnapshot) -> tuple[History, ...]:
    """Return the history of every device that has memory or a history."""
    devices = {*snapshot.segments["device"].tolist(), *snapshot.entries["device"].tolist()}
    return tuple(_history(snapshot, device) for device in sorted(devices))


def history_curve(snapshot: MemorySnapshot) -> pd.DataFrame:
    """Return one row per entry, in `SCHEMA` columns, by device."""
    parts = histories(snapshot)
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(part.rows for part in parts)])
    entries = snapshot.entries
    levels = {
        name: np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(p, name) for p in parts)])
        for name in ("requested_bytes", "reserved_bytes")
    }
    selected = entries[["device", "time_ns", "action"]].iloc[rows]
    return selected.reset_index(drop=True).assign(**levels)


def _history(snapshot: MemorySnapshot, device: int) -> History:
    entries = snapshot.entries
    rows = np.flatnonzero(entries["device"].to_numpy() == device)
    action, size = entries["action"].to_numpy()[rows], entries["bytes"].to_numpy()[rows]
    is_release = action == release_action(action)
    change = np.where(action == ALLOCATE, size, 0) - np.where(is_release, size, 0)
    is_more, is_less = np.isin(action, RESERVE), np.isin(action, UNRESERVE)
    reserve_change = np.where(is_more, size, 0) - np.where(is_less, size, 0)
    is_on_device = snapshot.segments["device"].to_numpy() == device
    requested = int(snapshot.segments["requested_bytes"].to_numpy()[is_on_device].sum())
    reserved = int(snapshot.segments["total_bytes"].to_numpy()[is_on_device].sum())
    start, start_reserved = requested - int(change.sum()), reserved - int(reserve_change.sum())
    level = start + np.cumsum(change)
    reserve = start_reserved + np.cumsum(reserve_change)
    peak_at = int(np.argmax(level)) if len(level) and level.max() > start else NONE
    return History(
        device=device,
        rows=rows,
        requested_bytes=level,
        reserved_bytes=reserve,
        start_requested_bytes=start,
        start_reserved_bytes=start_reserved,
        peak_at=peak_at,
        peak_bytes=int(level[peak_at]) if peak_at != NONE else start,
        most_reserved_bytes=max(start_reserved, int(reserve.max()) if len(reserve) else 0),
    )


def release_action(action: Objects) -> str:
    """Return the action of a release: its request, else its completion."""
    return RELEASE if (action == RELEASE).any() else RELEASE_DONE


def live_at_end(snapshot: MemorySnapshot, device: int) -> LiveBlocks:
    """Return a device's live memory when the snapshot was taken."""
    blocks = _allocated_blocks(snapshot, device)
    return LiveBlocks(
        bytes=blocks["requested_bytes"].to_numpy(),
        stack=blocks["stack"].to_numpy(),
        allocated_at=_last_allocations(snapshot, device, blocks),
    )


def live_at_peak(snapshot: MemorySnapshot, history: History) -> LiveBlocks:
    """Return a device's live memory at its peak.

    Memory allocated before the history and freed later has no stack: the entry has its release's.
    """
    entries = snapshot.entries
    action = entries["action"].to_numpy()[history.rows]
    changes = np.flatnonzero((action == ALLOCATE) | (action == release_action(action)))
    address = entries["address"].to_numpy()[history.rows[changes]]
    order = changes[np.argsort(address, kind="stable")]
    address = np.sort(address, kind="stable")
    is_allocation = action[order] == ALLOCATE
    is_same_next = np.append(address[1:] == address[:-1], False)[: len(order)]
    gone_at = np.where(is_same_next, np.append(order[1:], NONE)[: len(order)], len(history.rows))
    begun = is_allocation & (order <= history.peak_at) & (gone_at > history.peak_at)
    has_allocation = np.append(False, is_same_next[:-1] & is_allocation[:-1])[: len(order)]
    is_earlier = ~is_allocation & ~has_allocation & (order > history.peak_at)
    size, stack = (entries[name].to_numpy()[history.rows[order]] for name in ("bytes", "stack"))
    blocks = _allocated_blocks(snapshot, history.device)
    old = blocks.iloc[np.flatnonzero(_last_allocations(snapshot, history.device, blocks) == NONE)]
    none = np.full(int(is_earlier.sum()), NONE)
    return LiveBlocks(
        bytes=np.concatenate((size[begun], size[is_earlier], old["requested_bytes"].to_numpy())),
        stack=np.concatenate((stack[begun], none, old["stack"].to_numpy())),
        allocated_at=np.concatenate((history.rows[order[begun]], none, np.full(len(old), NONE))),
    )


def _allocated_blocks(snapshot: MemorySnapshot, device: int) -> pd.DataFrame:
    blocks = snapshot.blocks
    of_segment = snapshot.segments["device"].to_numpy()[blocks["segment"].to_numpy()]
    is_allocated = blocks["state"].to_numpy() == "allocated"
    return blocks.iloc[np.flatnonzero((of_segment == device) & is_allocated)]


def _last_allocations(snapshot: MemorySnapshot, device: int, blocks: pd.DataFrame) -> Ints:
    """Return the entry that allocated each block, or -1 if older than the history."""
    entries = snapshot.entries
    action = entries["action"].to_numpy()
    is_on_device = entries["device"].to_numpy() == device
    is_either = (action == ALLOCATE) | (action == release_action(action[is_on_device]))
    rows = np.flatnonzero(is_on_device & is_either)
    last = pd.Series(rows, index=entries["address"].to_numpy()[rows])
    last = last[~last.index.duplicated(keep="last")]
    last_entry = last.reindex(blocks["address"].to_numpy(), fill_value=NONE).to_numpy()
    is_allocation = np.append(action == ALLOCATE, False)[last_entry]
    return np.where(is_allocation, last_entry, NONE)
