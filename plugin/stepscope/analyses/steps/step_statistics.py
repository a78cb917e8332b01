"""Durations of steps: their variation, outliers and drift.

Durations are those of `step_breakdown`. The steady state leaves out the first and the last of five
or more steps: the first warms up, the last may wait for unfinished work.

An outlier is a step whose robust z-score, 0.6745 times its distance from the median over the median
absolute deviation (MAD), is above 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
1993). The drift is the Theil-Sen slope with the Mann-Kendall test (`robust_slope.py`).
"""

import math
from collections.abc import Collection

import numpy as np
import pandas as pd

from stepscope.analyses.core.batch_size import FIRST_DIMENSION
from stepscope.analyses.core.device_activity import all_busy, whole_activity
from stepscope.analyses.core.group_statistics import ratio
from stepscope.analyses.core.robust_slope import slope
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import step_at
from stepscope.model.table import public_table, rows_to_frame, to_frame
from stepscope.model.trace import Trace, computed

Numbers = Ints | Floats
STEADY_FROM = 5
"""Least number of steps for which the first and last are left out."""
MOST_Z = 3.5
NORMAL_MAD = 0.6745
"""The MAD of a normal distribution with standard deviation 1."""
NORMAL_MEAN_DEVIATION = 0.7979
"""Its mean absolute deviation, used where more than half of the steps are equal."""
STEPS: Schema = (
    Column("number", "int64", "id", "N in `ProfilerStep#N`."),
    Column("name", "object", "text", "The step's name."),
    Column("start_ns", "int64", "ns", "Its start, after the device work of the step before."),
    Column(
        "duration_ns",
        "int64",
        "ns",
        "Until the next step begins; the last one's, until its device work ends.",
    ),
    Column("device_busy_ns", "float64", "ns", "Time in which any device is busy; NaN: no device."),
    Column("device_busy_share", "float64", "share", "Of the step; NaN: no device."),
    Column("is_steady", "bool", "", "False for the first and last of five steps or more."),
    Column("from_median_ns", "float64", "ns", "Its duration less the median of the steady steps."),
    Column("robust_z", "float64", "", "Robust z-score among the steady steps; NaN: one step."),
    Column("is_outlier", "bool", "", "True where that is above 3.5, or below -3.5."),
)
STATISTICS: Schema = (
    Column("measure", "object", "text", "`duration`, `device_busy`, or a part of the step."),
    Column("step_count", "int64", "count", "Steps in the steady state."),
    Column("mean_ns", "float64", "ns", "Mean of the steady steps, as all columns below."),
    Column("median_ns", "float64", "ns", "Median."),
    Column("p95_ns", "float64", "ns", "95th percentile."),
    Column("min_ns", "int64", "ns", "Minimum."),
    Column("max_ns", "int64", "ns", "Maximum."),
    Column("standard_deviation_ns", "float64", "ns", "Of a sample; NaN for a single step."),
    Column("variation_share", "float64", "share", "Standard deviation over mean: the jitter."),
    Column("mad_ns", "float64", "ns", "Median absolute deviation from the median."),
    Column("outlier_count", "int64", "count", "Steps whose robust z-score is beyond 3.5."),
    Column("outliers", "object", "text", "Their numbers, comma separated; at most 20."),
    Column("trend_ns_per_step", "float64", "ns", "Theil and Sen's slope; NaN for a single step."),
    Column("trend_share", "float64", "share", "Its change from first to last step, of the median."),
    Column("trend_p", "float64", "", "Probability of such a trend by chance (Mann-Kendall)."),
)
MOST_NAMED = 20


@public_table(
    "steps",
    STEPS,
    "One row per step: its duration, device utilization, and whether it is an outlier.",
)
@computed
def steps_table(trace: Trace) -> pd.DataFrame:
    """Return one row per complete step."""
    steps, steady = step_breakdown(trace), is_steady(trace)
    count = len(steady)
    duration, busy = steps.duration_ns[:count], _device_busy_ns(trace)[:count]
    z = robust_z(duration, steady)
    median = float(np.median(duration[steady])) if count else math.nan
    columns = {
        "number": np.array(steps.numbers[:count], dtype=np.int64),
        "name": np.array(steps.names[:count], dtype=object),
        "start_ns": steps.start_ns[:count],
        "duration_ns": duration,
        "device_busy_ns": busy,
        "device_busy_share": ratio(busy, duration),
        "is_steady": steady,
        "from_median_ns": duration - median,
        "robust_z": z,
        "is_outlier": np.abs(z) > MOST_Z,
    }
    return to_frame(STEPS, columns)


@public_table(
    "step-statistics",
    STATISTICS,
    "One row per measure of the steady steps (duration, device time, each part of a step): its"
    " median, jitter, outliers and drift.",
)
@computed
def step_statistics(trace: Trace) -> pd.DataFrame:
    """Return one row per measure of the steady steps: their duration, device time and parts."""
    steps, steady = step_breakdown(trace), is_steady(trace)
    count = len(steady)
    measures: dict[str, Numbers] = {"duration": steps.duration_ns[:count]}
    if whole_activity(trace):
        measures["device_busy"] = _device_busy_ns(trace)[:count]
    for index, category in enumerate(steps.categories):
        measures[category] = steps.parts_ns[:count, index]
    numbers = np.array(steps.numbers[:count], dtype=np.int64)[steady]
    rows = [_row(name, of[steady], numbers) for name, of in measures.items() if count]
    return rows_to_frame(STATISTICS, rows)


@computed
def is_steady(trace: Trace) -> Mask:
    """Return a mask of the steps that belong to the steady state."""
    steady = np.ones(step_breakdown(trace).step_count, dtype=bool)
    if len(steady) >= STEADY_FROM:
        steady[[0, -1]] = False
    return steady


def _device_busy_ns(trace: Trace) -> Floats:
    steps = step_breakdown(trace)
    ends = steps.start_ns + steps.duration_ns
    busy = intervals.covered_ns(all_busy(trace), steps.start_ns, ends)
    return np.where(bool(whole_activity(trace)), busy, np.nan)


def _row(name: str, values: Numbers, numbers: Ints) -> dict[str, object]:
    mean, median = float(values.mean()), float(np.median(values))
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    is_odd = np.abs(robust_z(values, np.ones(len(values), dtype=bool))) > MOST_Z
    drift = slope(values.astype(np.float64))
    return {
        "measure": name,
        "step_count": len(values),
        "mean_ns": mean,
        "median_ns": median,
        "p95_ns": float(np.quantile(values, 0.95)),
        "min_ns": int(values.min()),
        "max_ns": int(values.max()),
        "standard_deviation_ns": deviation,
        "variation_share": deviation / mean if mean else math.nan,
        "mad_ns": float(np.median(np.abs(values - median))),
        "outlier_count": int(is_odd.sum()),
        "outliers": ", ".join(map(str, numbers[is_odd][:MOST_NAMED])),
        "trend_ns_per_step": drift.median,
        "trend_share": drift.median * (len(values) - 1) / median if median else math.nan,
        "trend_p": math.erfc(abs(drift.z) / math.sqrt(2)),
    }


def robust_z(values: Numbers, among: Mask) -> Floats:
    """Return each value's robust z-score, by the median and MAD of the values in `among`.

    Where more than half of those are equal, their mean absolute deviation replaces the MAD.
    """
    if among.sum() < 2:
        return np.full(len(values), np.nan)
    median = np.median(values[among])
    distance = values - median
    from_median = np.abs(distance[among])
    mad, mean = float(np.median(from_median)), float(from_median.mean())
    scale = mad / NORMAL_MAD if mad else mean / NORMAL_MEAN_DEVIATION
    far = np.where(distance == 0, 0.0, np.copysign(np.inf, distance))
    return distance / scale if scale else far


def inputs_differ(trace: Trace, numbers: Collection[int]) -> bool:
    """Return whether layers have input shapes in these steps (by number) that no other step has.

    Layers are convolutions, embeddings and linear layers. False without recorded shapes.
    """
    calls, steps = trace.host_calls, trace.steps
    dims = calls["input_dims"].cat.codes.to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], FIRST_DIMENSION.__contains__) & (dims >= 0))
    step = step_at(steps, calls["start_ns"].to_numpy()[rows])
    inside = step >= 0
    is_selected = np.isin(steps["number"].to_numpy(), list(numbers))[step[inside]]
    shapes = dims[rows][inside]
    return bool(np.setdiff1d(shapes[is_selected], shapes[~is_selected]).size)
