"""Breakdown of each step: every nanosecond is in exactly one category.

Steps are those of `core/window.py`: as in torch-tb-profiler (`event_parser.py`), from the host's
`ProfilerStep#N` to the end of the device work launched in it, but without gaps between them. Where
several categories are active at once, the first in `CATEGORIES` counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.exposed_communication import host_computing
from stepscope.analyses.core.frame_times import ALL, times
from stepscope.analyses.core.group_statistics import ratio
from stepscope.analyses.core.window import complete_steps, window
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

CATEGORIES: dict[str, tuple[str, str]] = {
    "kernel": ("Kernel", "A device computes."),
    "communication": (
        "Communication",
        "A collective runs and no device computes; without one, no operator.",
    ),
    "memcpy": ("Memcpy", "A device copies and nothing computes or communicates."),
    "memset": ("Memset", "A device only sets memory."),
    "runtime": ("Runtime", "The host is in a runtime call (launch, wait) and no device works."),
    "dataloader": ("DataLoader", "The host waits for the next batch and no device works."),
    "cpu": ("CPU", "The host runs an operator or a record_function range, and no device works."),
    "other": ("Other", "None of these: Python, NumPy, or unrecorded activity."),
}
"""Category id to label and meaning, in order of precedence."""
HOST_COLLECTIVE = re.compile(r"^(?:gloo|mpi):")
SCHEMA: Schema = (
    Column("number", "int64", "id", "N in `ProfilerStep#N`; 0: no steps are marked."),
    Column("name", "object", "text", "The step's name; `whole recording` without steps."),
    Column("category", "object", "text", "`kernel`, `communication`, `memcpy`, `memset`,"
           " `runtime`, `dataloader`, `cpu` or `other`, as in `torch-tb-profiler`."),
    Column("label", "object", "text", "The category in words."),
    Column("duration_ns", "int64", "ns", "Time of the step in which this is the first active"
           " category; the categories sum to the step."),
    Column("step_share", "float64", "share", "Of the step."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class StepBreakdown:
    """One row per step; `parts_ns[i].sum() == duration_ns[i]`."""

    categories: tuple[str, ...]
    numbers: tuple[int, ...]
    names: tuple[str, ...]
    start_ns: Ints
    duration_ns: Ints
    parts_ns: Ints
    step_count: int
    """0: the trace has no steps, and the only row is the whole window."""

    @property
    def mean_ns(self) -> int:
        """The mean step."""
        return round(self.duration_ns.mean()) if len(self.duration_ns) else 0

    @property
    def standard_deviation_ns(self) -> int:
        """The steps' standard deviation (of the population)."""
        return round(self.duration_ns.std()) if len(self.duration_ns) else 0

    @property
    def mean_parts_ns(self) -> dict[str, int]:
        """The mean step's categories; they sum to `mean_ns`."""
        if not len(self.duration_ns):
            return dict.fromkeys(self.categories, 0)
        parts = whole_parts(self.parts_ns.sum(axis=0), self.mean_ns)
        return dict(zip(self.categories, parts, strict=True))


def whole_parts(weights: Ints, total: int) -> list[int]:
    """Divide a total by weights into whole numbers that sum to it (largest remainders first)."""
    all_weight = int(weights.sum())
    if not all_weight:
        return [0] * len(weights)
    exact = [(int(weight) * total, index) for index, weight in enumerate(weights)]
    parts = [product // all_weight for product, _ in exact]
    left = total - sum(parts)
    by_remainder = sorted(exact, key=lambda item: (-(item[0] % all_weight), item[1]))
    for _, index in by_remainder[:left]:
        parts[index] += 1
    return parts


@computed
def step_breakdown(trace: Trace) -> StepBreakdown:
    """Break every step down into `CATEGORIES`."""
    starts, ends, numbers, names = _steps(trace)
    times = exclusive_times(trace)
    parts = [intervals.covered_ns(times[category], starts, ends) for category in CATEGORIES]
    return StepBreakdown(
        categories=tuple(CATEGORIES),
        numbers=numbers,
        names=names,
        start_ns=starts,
        duration_ns=ends - starts,
        parts_ns=np.stack(parts, axis=1),
        step_count=window(trace).step_count,
    )


@public_table(
    "step-breakdown",
    SCHEMA,
    "One row per step and category (kernel, communication, copies, DataLoader, …): the time of the"
    " step in which it is the first active one.",
)
def step_breakdown_table(trace: Trace) -> pd.DataFrame:
    """Return one row per step and category, in their order."""
    steps = step_breakdown(trace)
    count, width = steps.parts_ns.shape
    whole = np.repeat(steps.duration_ns, width)
    part = steps.parts_ns.ravel()
    columns = {
        "number": np.repeat(steps.numbers, width),
        "name": np.repeat(np.array(steps.names, dtype=object), width),
        "category": np.tile(np.array(steps.categories, dtype=object), count),
        "label": np.tile(np.array([label for label, _ in CATEGORIES.values()], object), count),
        "duration_ns": part,
        "step_share": ratio(part, whole),
    }
    return to_frame(SCHEMA, columns)


@computed
def exclusive_times(trace: Trace) -> Mapping[str, Intervals]:
    """Return, for each category, the times in the steps in which it is the first active one."""
    starts, ends, _, _ = _steps(trace)
    left = intervals.union(starts, ends)
    active = _category_times(trace)
    times = {}
    for category in CATEGORIES:
        times[category] = intervals.intersection(left, active.get(category, left))
        left = intervals.difference(left, times[category])
    return times


def _category_times(trace: Trace) -> dict[str, Intervals]:
    device, calls, runtime = trace.device_events, trace.host_calls, trace.runtime_calls
    kind = device["kind"].to_numpy()
    collective = device["is_collective"].to_numpy()
    on_host = name_mask(calls["name"], HOST_COLLECTIVE.match)
    is_step = calls["event"].isin(trace.steps["event"]).to_numpy()
    is_kernel = kind == int(Kind.KERNEL)
    working = ~is_step & ~on_host
    return {
        "kernel": times(device, is_kernel & ~collective),
        "communication": intervals.merged(
            times(device, collective), _exposed(trace, times(calls, on_host))
        ),
        "memcpy": times(device, kind == int(Kind.COPY)),
        "memset": times(device, kind == int(Kind.MEMORY_SET)),
        "runtime": times(runtime, ALL),
        "dataloader": data_loading(trace).times,
        "cpu": times(calls, working),
    }


def _exposed(trace: Trace, on_host: Intervals) -> Intervals:
    """Return the host's collectives; in traces without a device, without operators' times."""
    if len(trace.device_events) or not len(on_host):
        return on_host
    return intervals.difference(on_host, host_computing(trace))


Steps = tuple[Ints, Ints, tuple[int, ...], tuple[str, ...]]


def _steps(trace: Trace) -> Steps:
    complete = complete_steps(trace)
    if not len(complete):
        whole = window(trace)
        start, end = np.array([whole.start_ns]), np.array([whole.device_end_ns])
        return start, end, (0,), ("whole recording",)
    numbers = tuple(int(number) for number in complete.steps["number"])
    names = tuple(str(name) for name in complete.steps["name"])
    return complete.start_ns, complete.end_ns, numbers, names
