"""Memory by category over time: parameters, activations, gradients and others.

From a memory timeline (`export_memory_timeline`); torch derives the categories from the operators
that use tensors (`torch/profiler/_memory_profiler.py`), which needs `record_shapes`,
`profile_memory` and `with_stack`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.model.arrays import Floats
from stepscope.model.frames import Column, Schema
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
