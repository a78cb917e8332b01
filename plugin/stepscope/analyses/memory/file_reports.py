"""Report of `stepscope memory` for a memory snapshot or a memory timeline, and its categories.

torch derives a timeline's categories (`export_memory_timeline`) from the operators that use tensors
(`torch/profiler/_memory_profiler.py`), which needs `record_shapes`, `profile_memory` and
`with_stack`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core.robust_slope import SURE, slope
from stepscope.analyses.memory import snapshot_tables
from stepscope.analyses.memory.memory_report import MemoryReport, first_rows
from stepscope.analyses.memory.snapshot_history import History, histories
from stepscope.base import formatting
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.memory_snapshot import MemorySnapshot
from stepscope.model.frames.memory_timeline import CATEGORIES, MemoryTimeline
from stepscope.model.table import rows_to_frame

CURVE_SCHEMA: Schema = (
    Column("time_ns", "int64", "ns", "From the first event."),
    Column("total_bytes", "int64", "bytes", "All categories together."),
    *(Column(f"{name}_bytes", "int64", "bytes", meaning) for name, meaning in CATEGORIES.items()),
)
SCHEMA: Schema = (
    Column("category", "object", "text", "What it is for, in torch's words."),
    Column("at_peak_bytes", "int64", "bytes", "Held when most was held in all."),
    Column("at_peak_share", "float64", "share", "Of all that was held then."),
    Column("most_bytes", "int64", "bytes", "The most that it ever held."),
    Column("most_ns", "int64", "ns", "When it first held that, from the first event."),
    Column("mean_bytes", "float64", "bytes", "Its mean over time."),
    Column("start_bytes", "int64", "bytes", "Held at the beginning."),
    Column("end_bytes", "int64", "bytes", "Held at the end."),
)


@dataclass(frozen=True, kw_only=True)
class TimelinePeak:
    """First moment of most memory."""

    time_ns: int
    bytes: int


def category_curve(timeline: MemoryTimeline) -> pd.DataFrame:
    """Return one row per time, in `CURVE_SCHEMA` columns."""
    sizes = timeline.sizes_bytes
    columns = {f"{name}_bytes": sizes[:, column] for column, name in enumerate(CATEGORIES)}
    return pd.DataFrame({"time_ns": timeline.time_ns, "total_bytes": sizes.sum(axis=1), **columns})


def timeline_peak(timeline: MemoryTimeline) -> TimelinePeak | None:
    """Return the first peak; None for an empty timeline."""
    total = timeline.sizes_bytes.sum(axis=1)
    if not len(total):
        return None
    at = int(np.argmax(total))
    return TimelinePeak(time_ns=int(timeline.time_ns[at]), bytes=int(total[at]))


def category_table(timeline: MemoryTimeline) -> pd.DataFrame:
    """Return one row per category with memory, the largest at the peak first."""
    sizes = timeline.sizes_bytes
    if not len(sizes):
        return rows_to_frame(SCHEMA, ())
    at = int(np.argmax(sizes.sum(axis=1)))
    total = int(sizes[at].sum())
    table = pd.DataFrame(
        {
            "category": pd.Series(list(CATEGORIES), dtype=object),
            "at_peak_bytes": sizes[at],
            "at_peak_share": sizes[at] / total if total else np.full(len(CATEGORIES), np.nan),
            "most_bytes": sizes.max(axis=0),
            "most_ns": timeline.time_ns[np.argmax(sizes, axis=0)],
            "mean_bytes": _mean_over_time(timeline),
            "start_bytes": sizes[0],
            "end_bytes": sizes[-1],
        }
    )
    shown = table.iloc[np.flatnonzero((sizes != 0).any(axis=0))]
    by = ["at_peak_bytes", "most_bytes"]
    return shown.sort_values(by, ascending=False, kind="stable").reset_index(drop=True)


def _mean_over_time(timeline: MemoryTimeline) -> Floats:
    lasted = np.diff(timeline.time_ns).astype(np.float64)
    if not lasted.sum():
        last: Floats = timeline.sizes_bytes[-1].astype(np.float64)
        return last
    mean: Floats = lasted @ timeline.sizes_bytes[:-1] / lasted.sum()
    return mean


SAMPLES = 64
"""Number of evenly spaced moments at which levels are compared."""
BLOCK_SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("requested_bytes", "int64", "bytes", "Requested bytes."),
    Column("bytes", "int64", "bytes", "How large, rounded up."),
    Column("stack", "object", "text", "Who allocated it, outermost first."),
)
DEVICE_SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("peak_bytes", "int64", "bytes", "The most that tensors held, without rounding."),
    Column("peak_ns", "float64", "ns", "When, from the history's first entry; NaN: not in it."),
    Column("most_reserved_bytes", "int64", "bytes", "The most that was taken from the device."),
    Column("end_bytes", "int64", "bytes", "What tensors held when the snapshot was taken."),
    Column("end_reserved_bytes", "int64", "bytes", "What was taken from the device by then."),
    Column("entry_count", "int64", "count", "Entries of its history."),
    Column("growth_per_second", "float64", "bytes", "Theil-Sen over the history; NaN: no times."),
    Column("trend", "float64", "", "z of the Mann-Kendall test; beyond 2.58 surely no chance."),
)
NO_HISTORY = (
    "No history was recorded: call torch.cuda.memory._record_memory_history(max_entries=100_000)"
    " before what is to be seen."
)


def report_of_snapshot(snapshot: MemorySnapshot, *, most_rows: int) -> MemoryReport:
    """Return a snapshot's report: peak, holders, fragmentation, out of memory."""
    of_devices = histories(snapshot)
    devices = rows_to_frame(DEVICE_SCHEMA, [_device(snapshot, of) for of in of_devices])
    at_peak = snapshot_tables.snapshot_holders(snapshot, "peak")
    at_end = snapshot_tables.snapshot_holders(snapshot)
    pools = snapshot_tables.snapshot_pools(snapshot)
    ooms = snapshot_tables.snapshot_ooms(snapshot)
    holders = snapshot_tables.HOLDERS
    sections: tuple[tuple[str, str, tuple[Schema, pd.DataFrame]], ...] = (
        ("peak", "Peak of each device", (DEVICE_SCHEMA, devices)),
        ("holders", "Memory at the peak", (holders, _most_first(at_peak))),
        ("held", "Memory held at the end", (holders, _most_first(at_end))),
        ("fragmentation", "Reserved memory", (snapshot_tables.POOLS, pools)),
        ("blocks", "Largest that is still held", (BLOCK_SCHEMA, _largest(snapshot))),
        ("ooms", "Out of memory", (snapshot_tables.OOMS, ooms)),
    )
    return MemoryReport(
        what="snapshot",
        summary=_snapshot_summary(snapshot, devices, pools, ooms),
        tables=tuple(first_rows(*section, most_rows) for section in sections),
    )


def report_of_timeline(timeline: MemoryTimeline, *, most_rows: int) -> MemoryReport:
    """Return a timeline's report: peak and categories."""
    table = category_table(timeline)
    peak = timeline_peak(timeline)
    categories = first_rows("categories", "What memory is for", (SCHEMA, table), most_rows)
    if peak is None:
        nothing = "This timeline is empty: no memory of that device was recorded."
        return MemoryReport(what="timeline", summary=(nothing,), tables=(categories,))
    first = table.iloc[0]
    size, when = formatting.size(peak.bytes), formatting.duration(peak.time_ns)
    share, category = formatting.share(first["at_peak_share"]), first["category"].replace("_", " ")
    trend = slope(_sampled(timeline.time_ns, timeline.sizes_bytes.sum(axis=1)))
    grows = "It grows all the time: something may leak."
    summary = (
        f"At most {size} were held, {when} after the first event; {share} of that: {category}.",
        grows if trend.z >= SURE else "It does not grow all the time.",
    )
    return MemoryReport(what="timeline", summary=summary, tables=(categories,))


def _most_first(holders: pd.DataFrame) -> pd.DataFrame:
    return holders.sort_values("held_bytes", ascending=False, kind="stable")


def _device(snapshot: MemorySnapshot, history: History) -> dict[str, Any]:
    time_ns = snapshot.entries["time_ns"].to_numpy()[history.rows]
    has_times = len(time_ns) > 1 and bool((np.diff(time_ns) >= 0).all() and time_ns[0] >= 0)
    level = history.requested_bytes
    trend = slope(_sampled(time_ns, level) if has_times else np.zeros(0))
    seconds = (time_ns[-1] - time_ns[0]) / 1e9 if has_times else 0
    is_in_history = has_times and history.peak_at >= 0
    return {
        "device": history.device,
        "peak_bytes": history.peak_bytes,
        "peak_ns": time_ns[history.peak_at] - time_ns[0] if is_in_history else np.nan,
        "most_reserved_bytes": history.most_reserved_bytes,
        "end_bytes": level[-1] if len(level) else history.start_requested_bytes,
        "end_reserved_bytes": (
            history.reserved_bytes[-1] if len(level) else history.start_reserved_bytes
        ),
        "entry_count": len(level),
        "growth_per_second": trend.median * (SAMPLES - 1) / seconds if seconds else np.nan,
        "trend": trend.z,
    }


def _sampled(time_ns: Ints, level: Ints) -> Floats:
    """Return the level at evenly spaced times; empty for a single moment."""
    if len(time_ns) < 2 or time_ns[-1] <= time_ns[0]:
        return np.zeros(0)
    at = np.linspace(time_ns[0], time_ns[-1], SAMPLES)
    index = np.searchsorted(time_ns, at, side="right") - 1
    return level[np.clip(index, 0, len(level) - 1)].astype(np.float64)


def _largest(snapshot: MemorySnapshot) -> pd.DataFrame:
    blocks = snapshot.blocks
    texts = np.array([*snapshot.stacks, None], dtype=object)
    device = snapshot.segments["device"].to_numpy()[blocks["segment"].to_numpy()]
    table = pd.DataFrame(
        {
            "device": device,
            "requested_bytes": blocks["requested_bytes"].to_numpy(),
            "bytes": blocks["bytes"].to_numpy(),
            "stack": pd.Series(texts[blocks["stack"].to_numpy()], dtype=object),
        }
    )
    live = table.iloc[np.flatnonzero(blocks["state"].to_numpy() == "allocated")]
    return live.sort_values("requested_bytes", ascending=False, kind="stable")


def _snapshot_summary(
    snapshot: MemorySnapshot, devices: pd.DataFrame, pools: pd.DataFrame, ooms: pd.DataFrame
) -> tuple[str, ...]:
    sentences = [_of_device(row) for row in devices.to_dict("records")]
    if (free := int(pools["free_bytes"].sum())) > 0:
        largest = int(pools["largest_free_bytes"].max())
        sentences.append(
            f"{formatting.size(free)} of reserved memory are free, the largest piece"
            f" {formatting.size(largest)}."
        )
    if len(ooms):
        times = formatting.count(len(ooms), "time")
        sentences.append(
            f"It ran out of memory {times}: {snapshot_tables.CAUSES[ooms['cause'][0]]}"
        )
    if not len(snapshot.entries):
        sentences.append(NO_HISTORY)
    return tuple(sentences)


def _of_device(row: Mapping[Hashable, Any]) -> str:
    peak, end = formatting.size(row["peak_bytes"]), formatting.size(row["end_bytes"])
    reserved = formatting.size(row["most_reserved_bytes"])
    return (
        f"Tensors on device {row['device']:.0f} held at most {peak} of {reserved} reserved,"
        f" and {end} in the end."
    )
