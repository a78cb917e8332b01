"""Collectives with bandwidth, exposed time and step, and masks of collectives by request time."""

import re

import numpy as np
import pandas as pd

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.collective_bandwidth import bus_factor, bytes_per_second
from stepscope.analyses.core.exposed_communication import hidden_ns
from stepscope.analyses.core.training_detection import BACKWARD
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

NO_STEP = -1
GROUP: Schema = (
    Column("group", "object", "text", "The process group's name; None: not recorded."),
    Column("group_description", "object", "text", "Its description, such as `default_pg`."),
    Column("group_ranks", "object", "text", "Its ranks (JSON); None: unknown."),
    Column("group_size", "float64", "count", "Number of its ranks; NaN: not recorded."),
)
DTYPE = Column("dtype", "object", "text", "torch's type of an element; None: unknown.")
SCHEMA: Schema = (
    Column("event", "int64", "id", "Its first kernel; on the host its annotation or call."),
    Column("name", "object", "text", "That event's name as the profiler wrote it."),
    Column("kind", "object", "text", "`all_reduce`, `all_gather`, `send`, …; `other`: unknown."),
    Column("backend", "object", "text", "The library: `nccl`, `rccl`, `gloo`, `symm_mem`, …."),
    Column("step", "int64", "id", "Number of the `ProfilerStep` that requested it; -1: none."),
    Column("start_ns", "int64", "ns", "Its start: on the device, or for gloo on the host."),
    Column("duration_ns", "float64", "ns", "From its first kernel's start to its last one's end;"
           " NaN where only the host's call into a device's library was recorded."),
    Column("overlap_ns", "float64", "ns", "The part in which its device also computes."),
    Column("exposed_ns", "float64", "ns", "The part in which its device does not compute."),
    Column("launch_to_start_ns", "float64", "ns", "From the host's call to the first kernel; NaN"
           " where the call is unknown, and on the host."),
    DTYPE,
    Column("in_bytes", "float64", "bytes", "The rank's input; NaN: not recorded."),
    Column("out_bytes", "float64", "bytes", "The rank's output; NaN: not recorded."),
    Column("message_bytes", "float64", "bytes", "The larger of the two: nccl-tests' size."),
    Column("algorithm_bytes_per_second", "float64", "bytes/s", "Message over time, with waits."),
    Column("bus_bytes_per_second", "float64", "bytes/s", "nccl-tests' busbw; NaN: unknown factor."),
    *GROUP,
    Column("sequence", "int64", "id", "Its number within the group (torch's `Seq`); -1: none."),
    Column("source_rank", "int64", "id", "Sender of a point-to-point transfer; -1: unknown."),
    Column("destination_rank", "int64", "id", "Receiver; -1: unknown."),
    Column("is_async", "object", "", "Whether the host did not wait for it; None: not recorded."),
    Column("device", "int64", "id", "The device of its first kernel; -1: the host, or unknown."),
    Column("stream", "int64", "id", "The stream of its first kernel; -1: none."),
    Column("kernel_count", "int64", "count", "Its kernels; 0 on the host."),
)  # fmt: skip


@public_table(
    "collective-events",
    SCHEMA,
    "One row per collective: its time, process group, message, bandwidth, and exposed time.",
)
@computed
def collective_events(trace: Trace) -> pd.DataFrame:
    """Return one row per collective, in `SCHEMA` columns, in the order they began."""
    frame = trace.collectives
    is_timed = frame["is_timed"].to_numpy()
    duration = np.where(is_timed, frame["duration_ns"].to_numpy(), np.nan)
    hidden = np.where(is_timed, hidden_ns(trace), np.nan)
    queued = np.where(frame["kernel_count"] > 0, frame["start_ns"] - frame["call_start_ns"], np.nan)
    rate = bytes_per_second(frame["message_bytes"].to_numpy(), duration)
    columns = {c.name: plain_values(frame[c.name]) for c in SCHEMA if c.name in frame}
    factor = bus_factor(columns["kind"], frame["group_size"].to_numpy())
    columns |= {
        "step": step_numbers(trace),
        "duration_ns": duration,
        "overlap_ns": hidden,
        "exposed_ns": duration - hidden,
        "launch_to_start_ns": queued,
        "algorithm_bytes_per_second": rate,
        "bus_bytes_per_second": rate * factor,
    }
    return to_frame(SCHEMA, columns)


def step_numbers(trace: Trace) -> Ints:
    """Return, for each row of `collectives`, the number of the step that requested it, or -1."""
    steps, moment_ns = trace.steps, requested_ns(trace)
    index = np.searchsorted(steps["start_ns"].to_numpy(), moment_ns, side="right") - 1
    ends, numbers = steps["end_ns"].to_numpy(), np.append(steps["number"].to_numpy(), NO_STEP)
    is_behind = moment_ns >= (ends.max() if len(ends) else 0)
    return np.asarray(numbers[np.where(is_behind, -1, index)])


def requested_ns(trace: Trace) -> Floats:
    """Return, for each row of `collectives`, the host's call time, else its start."""
    frame = trace.collectives
    has_call = frame["call"].to_numpy() >= 0
    return np.where(has_call, frame["call_start_ns"].to_numpy(), frame["start_ns"].to_numpy())


def requested_during(trace: Trace, times: Intervals) -> Mask:
    """Return which rows of `collectives` the host requested at any of these times."""
    moment_ns = requested_ns(trace)
    if not len(times):
        return np.zeros(len(moment_ns), dtype=bool)
    index = np.searchsorted(times[:, 0], moment_ns, side="right") - 1
    return np.asarray((index >= 0) & (moment_ns < times[index, 1]))


def requested_in_calls(trace: Trace, name: re.Pattern[str]) -> Mask:
    """Return which rows of `collectives` the host requested during calls that match a name."""
    calls = trace.host_calls
    return requested_during(trace, frame_times.times(calls, name_mask(calls["name"], name.search)))


@computed
def is_in_forward(trace: Trace) -> Floats:
    """Return, for each row of `collectives`, 1 before its step's backward pass begins, else 0.

    Collectives of the forward pass are of activations. NaN without a step or a backward pass.
    """
    calls, steps, moment_ns = trace.host_calls, trace.steps, requested_ns(trace)
    backward = np.sort(calls["start_ns"].to_numpy()[name_mask(calls["name"], BACKWARD.search)])
    flags = np.full(len(moment_ns), np.nan)
    if not len(backward) or not len(steps):
        return flags
    start, end = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    index = np.searchsorted(start, moment_ns, side="right") - 1
    first = np.append(backward, np.iinfo(np.int64).max)[np.searchsorted(backward, start[index])]
    is_in_step = (index >= 0) & (moment_ns < end[index]) & (first < end[index])
    flags[is_in_step] = (moment_ns < first)[is_in_step]
    return flags
