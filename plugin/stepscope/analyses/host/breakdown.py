"""Host time: the main thread's by category per step, and computing without a device.

Every nanosecond is in one category. Of several the first in `CATEGORIES` counts: a launch in an
operator is launching, the rest of the operator is dispatch. A step is the host's `ProfilerStep#N`.

Calling an operator costs some microseconds of Python, dispatch and profiler. Self time of a call
that takes many times as long is computing, except for an operator that reads a single value: a long
one waits for a device that was not recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.synchronizations import is_blocking
from stepscope.analyses.core.window import complete_steps, window
from stepscope.base.errors import MissingDataError
from stepscope.dialects import LAUNCH_NAME
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

CATEGORIES: dict[str, str] = {
    "data_loading": "waiting for the next batch",
    "wait": "in a call that waits for a device, or in a copy that blocks",
    "allocator": "in a device allocation or release",
    "launch": "in a call that launches work",
    "runtime": "in another call into runtime or driver",
    "compiling": "compiling with torch.compile",
    "operator": "in an operator, outside of such calls: dispatch, or computing on the CPU",
    "other_thread": "in nothing recorded while another thread ran operators: the backward pass",
    "python": "in none of these: Python between operators, or what was not recorded",
}
"""Category and the main thread's activity in it, in order of precedence."""
_MEANINGS = "; ".join(f"`{name}`: {meaning}" for name, meaning in CATEGORIES.items())
SCHEMA: Schema = (
    Column("step", "object", "text", "The step's name; None: all steps together."),
    Column("category", "object", "", f"What the main thread did: {_MEANINGS}."),
    Column("host_ns", "int64", "ns", "How long; a step's rows sum to the host's step."),
    Column("step_share", "float64", "share", "Of the host's step."),
)


@public_table(
    "host-breakdown",
    SCHEMA,
    "One row per step and category: where the main thread was, in operators, launches, waits, or"
    " in Python between them.",
)
@computed
def host_breakdown(trace: Trace) -> pd.DataFrame:
    """Return one row per step and category, then all steps together; without steps, the window.

    Raises:
        MissingDataError: no host event was recorded.
    """
    if not len(trace.host_calls) and not len(trace.runtime_calls):
        msg = "no call of the host was recorded"
        raise MissingDataError(msg, "profile(activities=[ProfilerActivity.CPU, ...])")
    names, start, end = _steps(trace)
    times = _times(trace)
    parts = np.zeros((len(names), len(CATEGORIES)), dtype=np.int64)
    left = intervals.union(start, end)
    for column, name in enumerate(CATEGORIES):
        category_times = intervals.intersection(left, times[name]) if name in times else left
        parts[:, column] = intervals.covered_ns(category_times, start, end)
        left = intervals.difference(left, category_times)
    together = np.concatenate((parts, parts.sum(axis=0)[None]))
    duration = np.maximum(together.sum(axis=1), 1)
    columns: dict[str, NDArray[Any]] = {
        "step": np.repeat(np.array([*names, None], dtype=object), len(CATEGORIES)),
        "category": np.tile(np.array(list(CATEGORIES), dtype=object), len(together)),
        "host_ns": together.ravel(),
        "step_share": (together / duration[:, None]).ravel(),
    }
    return to_frame(SCHEMA, columns)


def _steps(trace: Trace) -> tuple[list[str], Ints, Ints]:
    complete = complete_steps(trace)
    if not len(complete):
        whole = window(trace)
        return ["whole recording"], np.array([whole.start_ns]), np.array([whole.end_ns])
    steps = complete.steps
    names = [str(name) for name in steps["name"]]
    return names, steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()


def _times(trace: Trace) -> dict[str, Intervals]:
    calls, runtime, main = trace.host_calls, trace.runtime_calls, main_thread(trace)
    on_main = (runtime["thread"] == main).to_numpy()
    allocates = name_mask(runtime["name"], trace.dialect.allocator_call.search)
    phase = compile_events(trace).phase
    is_phase = phase == np.arange(len(phase))
    is_operator, on_main_thread = (
        calls["is_operator"].to_numpy(),
        (calls["thread"] == main).to_numpy(),
    )
    return {
        "data_loading": data_loading(trace).times,
        "wait": times(runtime, on_main & is_blocking(trace)),
        "allocator": times(runtime, on_main & allocates),
        "launch": times(runtime, on_main & name_mask(runtime["name"], LAUNCH_NAME.search)),
        "runtime": times(runtime, on_main),
        "compiling": times(calls, is_phase & on_main_thread),
        "operator": times(calls, is_operator & on_main_thread),
        "other_thread": times(calls, is_operator & ~on_main_thread),
    }


LONG_NS = 20_000
"""Of a call's self time: calls cost 2 to 5 µs each in the traces of sample_logs."""
READING = "aten::_local_scalar_dense"


@dataclass(frozen=True, kw_only=True)
class CpuComputeTime:
    """Of the thread that computes most, in the window."""

    share: float
    """Fraction of the window in self time of long operator calls; 0 without any."""
    shares: Mapping[str, float]
    """The same by operator name, in descending order."""


@computed
def cpu_compute_time(trace: Trace) -> CpuComputeTime:
    """Return the fraction of the window in which a thread computes in operators."""
    span, calls = window(trace), trace.host_calls
    start, self_ns = calls["start_ns"].to_numpy(), calls["self_ns"].to_numpy()
    is_long = calls["is_operator"].to_numpy() & (self_ns >= LONG_NS)
    is_long &= (calls["name"] != READING).to_numpy()
    is_long &= (start >= span.start_ns) & (start < span.end_ns)
    rows = np.flatnonzero(is_long)
    thread = calls["thread"].cat.codes.to_numpy()[rows]
    if not len(rows):
        return CpuComputeTime(share=0.0, shares={})
    busiest = np.bincount(thread - thread.min(), self_ns[rows]).argmax() + thread.min()
    rows = rows[thread == busiest]
    names = calls["name"].astype(object).to_numpy()[rows]
    fractions = pd.Series(self_ns[rows]).groupby(names, sort=False).sum() / max(1, span.duration_ns)
    largest = fractions.sort_values(ascending=False, kind="stable")
    return CpuComputeTime(
        share=float(fractions.sum()),
        shares={str(name): float(share) for name, share in largest.items()},
    )
