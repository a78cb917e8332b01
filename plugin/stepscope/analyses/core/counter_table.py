"""Statistics of each counter's series: samples, extremes, and the mean over time.

The mean weighs each sample by the time until the next sample of its series; the last one weighs
nothing. Samples of a single moment have the plain mean.
"""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics as statistics
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

UNIT = re.compile(r"[(\[]([^()\[\]]{1,20})[)\]]$")
"""`Power (W)`, `rx [bytes/s]`."""
TRACK = ("name", "series", "process", "identifier", "device", "derived_by")
SCHEMA: Schema = (
    Column("name", "object", "text", "The counter's name as it was written."),
    Column("series", "object", "text", "The value's name: the argument of the counter event."),
    Column("process", "object", "text", "The process, or device, that it belongs to."),
    Column("identifier", "object", "text", "Tells tracks of one name apart; None: there is none."),
    Column("device", "int64", "id", "The device's number; -1: not recorded."),
    Column("unit", "object", "text", "Where series or name end in it, as in `Power (W)`; None."),
    Column("derived_by", "object", "text", "`torch-tb-profiler`, `HTA` or `stepscope`, which"
           " computed it from the events; None: recorded."),
    Column("sample_count", "int64", "count", "Samples that are numbers."),
    Column("first_ns", "int64", "ns", "Time of the first sample, from the trace's first event."),
    Column("last_ns", "int64", "ns", "Time of the last sample."),
    Column("minimum", "float64", "", "The least value."),
    Column("mean", "float64", "", "Mean over the time from the first to the last sample."),
    Column("maximum", "float64", "", "The greatest value."),
    Column("last", "float64", "", "The last value."),
)  # fmt: skip


@public_table(
    "counters",
    SCHEMA,
    "One row per series of a counter in the trace (power, RDMA, hardware, the user's): its"
    " samples, extremes and mean over time.",
)
@computed
def counter_table(trace: Trace) -> pd.DataFrame:
    """Return one row per series of a track, by name, series and process."""
    samples = trace.counters
    group, first = statistics.group_rows(samples, TRACK)
    columns: dict[str, NDArray[Any]] = {
        key: plain_values(samples[key].iloc[first]) for key in TRACK
    }
    pairs = zip(columns["series"], columns["name"], strict=True)
    columns["unit"] = np.array([_unit(*pair) for pair in pairs], dtype=object)
    columns |= _figures(samples, group, len(first))
    return to_frame(SCHEMA, columns, "name", "series", "process", "identifier", "device")


def _unit(series: str | None, name: str | None) -> str | None:
    for text in (series, name):
        if text and (match := UNIT.search(text.rstrip())):
            return match[1].strip()
    return None


def _figures(samples: pd.DataFrame, group: Ints, count: int) -> dict[str, NDArray[Any]]:
    order = np.argsort(group, kind="stable")  # by series, then time
    group = group[order]
    time_ns = samples["start_ns"].to_numpy()[order]
    values = samples["value"].to_numpy()[order]
    size = np.bincount(group, minlength=count)
    end = np.cumsum(size)
    begin = end - size
    lasting_ns = np.append(time_ns[1:], time_ns[-1:]) - time_ns
    lasting_ns[end - 1] = 0
    weight = lasting_ns / max(1, lasting_ns.max(initial=0))  # no product is beyond a float
    weighted = statistics.weighted_mean(values, weight, group, count)
    return {
        "sample_count": size,
        "first_ns": time_ns[begin],
        "last_ns": time_ns[end - 1],
        "minimum": np.minimum.reduceat(values, begin) if count else values,
        "mean": np.where(np.isnan(weighted), statistics.mean(values, group, count), weighted),
        "maximum": np.maximum.reduceat(values, begin) if count else values,
        "last": values[end - 1],
    }
