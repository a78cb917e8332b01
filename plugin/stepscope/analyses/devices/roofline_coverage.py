"""Fraction of the kernels' time for which the roofline has operations or bytes, by category.

Where it has none, the reason of most of that time is given: no recorded shapes, types or values, no
operator around the launch, no formula.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.devices.roofline import has_work, roofline
from stepscope.model.frames import Column, Schema
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
    Column("category", "object", "text", "Kind of operators, as in `operators-by-category`."),
    Column("kernel_ns", "int64", "ns", "Time of their kernels."),
    Column("kernel_share", "float64", "share", "Of the time of all kernels on the device."),
    Column("covered_share", "float64", "share", "Of their kernels' time, that with known"
           " operations or bytes."),
    Column("reason", "object", "text", "Why most of the other time has no known work; None: all"
           " has."),
    Column("memory_share", "float64", "share", "Of the memory's bandwidth; above 1, caches"
           " delivered part of it. NaN: unknown."),
    Column("bytes_per_second", "float64", "bytes/s", "Known bytes over the time of the"
           " same kernels."),
    Column("moved_bytes", "float64", "bytes", "Known bytes of all calls; NaN: none is known."),
    Column("covered_ns", "int64", "ns", "That time."),
    Column("device_covered_share", "float64", "share", "Of the time of all kernels on the device,"
           " that with known operations or bytes: the same in all its rows."),
    Column("device", "int64", "id", "The device."),
)  # fmt: skip


@public_table(
    "roofline-coverage",
    SCHEMA,
    "One row per device and category of operators: for how much of their kernels' time the roofline"
    " knows operations or bytes, how fast memory was, and why the rest is unknown.",
    title="Roofline coverage",
)
@computed
def roofline_coverage(trace: Trace) -> pd.DataFrame:
    """Return one row a device and category, most kernel time first.

    Raises:
        MissingDataError: nothing ran on a device, or shapes were not recorded.
    """
    rows = roofline(trace)
    group, first = statistics.group_rows(rows, ("device", "category"))
    count = len(first)
    spent, moved = rows["kernel_ns"].to_numpy(), rows["moved_bytes"].to_numpy()
    has_bytes = ~np.isnan(moved)
    totals = {
        name: statistics.sums_where(spent, group, count, where)
        for name, where in (("all", np.True_), ("work", has_work(rows)), ("bytes", has_bytes))
    }
    total_bytes = np.bincount(group, weights=np.where(has_bytes, moved, 0), minlength=count)
    rate = statistics.ratio(total_bytes, totals["bytes"] / 1e9)
    columns: dict[str, NDArray[Any]] = {
        "device": rows["device"].to_numpy()[first],
        "category": plain_values(rows["category"].iloc[first]),
        "kernel_ns": totals["all"],
        "kernel_share": np.bincount(group, weights=rows["kernel_share"], minlength=count),
        "covered_ns": totals["work"],
        "covered_share": statistics.ratio(totals["work"], totals["all"]),
        "device_covered_share": rows["covered_share"].to_numpy()[first],
        "moved_bytes": np.where(totals["bytes"] > 0, total_bytes, np.nan),
        "bytes_per_second": rate,
        "memory_share": rate / rows["peak_bytes_per_second"].to_numpy()[first],
        "reason": _reasons(rows, group, count),
    }
    return to_frame(SCHEMA, columns, "device", "-kernel_ns", "category")


def _reasons(rows: pd.DataFrame, group: NDArray[Any], count: int) -> NDArray[Any]:
    """Return each group's reason of most of the time without known work."""
    reasons = np.full(count, None, dtype=object)
    without_work = np.flatnonzero(~has_work(rows))
    notes = pd.Categorical(rows["note"].iloc[without_work])
    pair = group[without_work] * (len(notes.categories) + 1) + notes.codes
    pairs, index = np.unique(pair, return_inverse=True)
    spent = statistics.sums(rows["kernel_ns"].to_numpy()[without_work], index, len(pairs))
    for key in pairs[np.argsort(spent, kind="stable")].tolist():  # the most time stays
        number, code = divmod(key, len(notes.categories) + 1)
        reasons[number] = notes.categories[code]
    return reasons
