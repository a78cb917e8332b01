"""Distribution of the durations of one name: a histogram, and sums per step."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import complete_steps
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.steps import step_at
from stepscope.model.trace import Trace

MOST_BINS = 40
FEWEST_BINS = 6
LOGARITHMIC_FROM = 20
"""Bins are logarithmic where the longest time is more than this many times the shortest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Number of durations in each bin; the last edge belongs to the last bin."""

    edges_ns: Ints
    counts: Ints
    is_logarithmic: bool


def histogram(durations_ns: Ints) -> Histogram:
    """Return the histogram of one or more durations, with whole and distinct edges.

    The number of bins is about twice the square root of the number of durations.
    """
    least, most = int(durations_ns.min()), int(durations_ns.max())
    if least == most:
        edges = np.array([least, least + 1])
        return Histogram(edges_ns=edges, counts=np.array([len(durations_ns)]), is_logarithmic=False)
    bin_count = int(np.clip(2 * np.sqrt(len(durations_ns)), FEWEST_BINS, MOST_BINS))
    is_logarithmic = most > LOGARITHMIC_FROM * max(1, least)
    space = np.geomspace if is_logarithmic else np.linspace
    edges = np.unique(np.round(space(max(1, least), most, bin_count + 1)).astype(np.int64))
    edges[0], edges[-1] = least, most
    counts, _ = np.histogram(durations_ns, edges)
    return Histogram(edges_ns=edges, counts=counts, is_logarithmic=is_logarithmic)


def step_index(trace: Trace, moments_ns: Ints) -> Ints:
    """Return the index of the complete step of each moment of the host; -1: none."""
    return step_at(complete_steps(trace).steps, moments_ns)


def launch_ns(trace: Trace, rows: Ints) -> Ints:
    """Return the launch times of rows of `device_events`; their start where that is unknown.

    So device work belongs to the step that launched it, as in slices of a trace.
    """
    call = links(trace).call_of_device_event[rows]
    start_ns = trace.device_events["start_ns"].to_numpy()[rows]
    launched = np.append(trace.runtime_calls["start_ns"].to_numpy(), 0)[call]
    return np.where(call == NONE, start_ns, launched)


def sums_by_step(trace: Trace, index: Ints, *values: Ints) -> pd.DataFrame:
    """Return one row per complete step: its number, count of rows, and sums of values.

    `index` is the result of `step_index`; the sums are columns 0, 1, ...
    """
    steps = complete_steps(trace).steps
    inside = index != NONE
    columns = {
        "number": steps["number"].to_numpy(),
        "count": np.bincount(index[inside], minlength=len(steps)),
    }
    for number, column in enumerate(values):
        total = np.zeros(len(steps), dtype=np.int64)
        np.add.at(total, index[inside], column[inside])
        columns[str(number)] = total
    return pd.DataFrame(columns)


def longest(durations_ns: Ints, most: int) -> Ints:
    """Return the indices of the longest durations, the longest first; of equals the first."""
    return np.argsort(-durations_ns, kind="stable")[:most]
