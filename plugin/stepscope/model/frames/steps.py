"""Steps of the training loop: the host's `ProfilerStep#N`, without the device's copies of them."""

import re

import numpy as np
import pandas as pd

from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask

SCHEMA: Schema = (
    Column("event", "int64", "id", "Index of the annotation in the file."),
    Column("number", "int64", "id", "N in `ProfilerStep#N`; below 0 if N is not a number."),
    Column("name", "category", "text", "The annotation's name."),
    Column("start_ns", "int64", "ns", "Start on the host."),
    Column("duration_ns", "int64", "ns", "Duration on the host."),
    Column("end_ns", "int64", "ns", "`start_ns + duration_ns`."),
    Column("thread", "category", "text", "The host thread, as `pid/tid`."),
)
ALL_STEPS = "ProfilerStep*"
"""torch's name for all steps together (`torch/autograd/profiler_util.py`, `_rewrite_name`)."""
STEP_NAME = re.compile(r"^ProfilerStep\s*#\s*(\d{1,18}(?!\d))?")


def without_number(name: str) -> str:
    """Return the name of an event, with one name for all steps."""
    return ALL_STEPS if STEP_NAME.match(name) else name


def build(host_calls: pd.DataFrame) -> pd.DataFrame:
    """Return one row per step, in `SCHEMA` columns, by time; steps without a duration are skipped.

    A step that begins while another of the same number runs is a copy of it, and is skipped.
    """
    is_step = name_mask(host_calls["name"], STEP_NAME.match)
    is_timed = is_step & (host_calls["duration_ns"].to_numpy() > 0)
    candidates = host_calls.loc[
        is_timed, ["event", "name", "start_ns", "duration_ns", "end_ns", "thread"]
    ]
    matches = [STEP_NAME.match(str(name)) for name in candidates["name"]]
    numbers = [int(m[1]) if m and m[1] else -1 - index for index, m in enumerate(matches)]
    steps = candidates.assign(number=np.array(numbers, dtype=np.int64))
    steps = steps.sort_values("start_ns", kind="stable")
    latest_end_ns = steps.groupby("number")["end_ns"].cummax()
    running_until = latest_end_ns.groupby(steps["number"]).shift()
    is_copy = steps["start_ns"] < running_until.fillna(-np.inf)
    return steps.loc[~is_copy, [column.name for column in SCHEMA]].reset_index(drop=True)


def step_at(steps: pd.DataFrame, moments_ns: Ints) -> Ints:
    """Return the index of the step that runs on the host at each moment, or -1."""
    index = np.searchsorted(steps["start_ns"].to_numpy(), moments_ns, side="right") - 1
    ends = np.append(steps["end_ns"].to_numpy(), np.iinfo(np.int64).min)
    return np.where(moments_ns < ends[index], index, NONE)
