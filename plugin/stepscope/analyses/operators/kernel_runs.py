"""Sequences of kernels that each operator runs, and their frequency.

Like HTA's frequent kernel sequences (`get_frequent_cuda_kernel_sequences`), for every operator and
annotation: all work launched inside a call, on its thread, in launch order. HTA sorts by start on
the device, which differs only with several streams.

Two calls have the same sequence if their first 2^k kernels and their last 2^k are the same, for the
greatest k that fits. Runs of 2^k kernels get their numbers by doubling: exact, and linear in the
number of kernels and calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

SHORTEST = 2
MOST_DOUBLED = 5
LONGEST = 2 ** (MOST_DOUBLED + 1) - 1
"""Calls with more kernels are whole parts of the program and have no useful sequence."""
MOST_ROWS = 1000
ARROW = " → "
SCHEMA: Schema = (
    Column("operator", "object", "text", "The operator's or annotation's name."),
    Column("sequence", "object", "text", "What its calls ran on the device: names in short."),
    Column("kernel_count", "int64", "count", "How many kernels, copies and memory sets it is."),
    Column("call_count", "int64", "count", "Calls that ran just these, in this order."),
    Column("device_ns", "int64", "ns", "Sum of their durations (HTA's GPU kernel duration)."),
    Column("host_ns", "int64", "ns", "Sum of the calls' durations (HTA's CPU op duration)."),
    Column("mean_device_ns", "float64", "ns", "Mean device time of a call."),
    Column("mean_host_ns", "float64", "ns", "Mean duration of a call."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    """Device work by launching thread, in launch order."""

    row: Ints
    code: Ints
    device_ns: Ints
    """Sum of durations before each piece of work, then of all: one entry more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """Operators and annotations that launched from `SHORTEST` to `LONGEST` pieces of work."""

    row: Ints
    first: Ints
    """Index of a call's first piece of work in `_Work`."""
    count: Ints


@public_table(
    "operator-sequences",
    SCHEMA,
    "One row per operator or annotation and the sequence of kernels that its calls ran: how many"
    " calls, and what they cost. At most 1000, of two to 63 kernels.",
    title="Kernel sequences of operators",
)
@computed
def operator_sequences(trace: Trace) -> pd.DataFrame:
    """Return one row per operator and sequence, most device time first, at most `MOST_ROWS`."""
    work, calls = _work_and_calls(trace)
    host = trace.host_calls
    keys = pd.DataFrame(
        {
            "operator": host["name"].cat.codes.to_numpy()[calls.row].astype(np.int64),
            "count": calls.count,
            "sequence": _numbers(work, calls),
        }
    )
    group, first = group_statistics.group_rows(keys, keys.columns)
    device = work.device_ns[calls.first + calls.count] - work.device_ns[calls.first]
    device_ns = group_statistics.sums(device, group, len(first))
    duration = host["duration_ns"].to_numpy()[calls.row]
    host_ns = group_statistics.sums(duration, group, len(first))
    call_count = np.bincount(group, minlength=len(first))
    most = np.argsort(-device_ns, kind="stable")[:MOST_ROWS]
    shown = first[most]
    columns = {
        "operator": host["name"].astype(object).to_numpy()[calls.row[shown]],
        "sequence": np.array(list(_texts(trace, work, calls, shown)), dtype=object),
        "kernel_count": calls.count[shown],
        "call_count": call_count[most],
        "device_ns": device_ns[most],
        "host_ns": host_ns[most],
        "mean_device_ns": device_ns[most] / np.maximum(call_count[most], 1),
        "mean_host_ns": host_ns[most] / np.maximum(call_count[most], 1),
    }
    return to_frame(SCHEMA, columns)


def _work_and_calls(trace: Trace) -> tuple[_Work, _Calls]:
    events, runtime, host = trace.device_events, trace.runtime_calls, trace.host_calls
    call = links(trace).call_of_device_event
    row = np.flatnonzero(call >= 0)
    launched = runtime["start_ns"].to_numpy()[call[row]]
    thread = runtime["thread"].cat.codes.to_numpy()[call[row]]
    order = np.argsort(launched, kind="stable")
    order = order[np.argsort(thread[order], kind="stable")]
    row, launched, thread = row[order], launched[order], thread[order]
    duration = events["duration_ns"].to_numpy()[row]
    work = _Work(
        row=row,
        code=events["name"].cat.codes.to_numpy()[row].astype(np.int64),
        device_ns=np.concatenate(([0], np.cumsum(duration))),
    )
    of_call = host["thread"].cat.codes.to_numpy()
    start, end = host["start_ns"].to_numpy(), host["end_ns"].to_numpy()
    first, behind = np.zeros(len(host), dtype=np.int64), np.zeros(len(host), dtype=np.int64)
    for number in np.unique(thread).tolist():
        low, high = np.searchsorted(thread, [number, number + 1])
        on_thread = of_call == number
        first[on_thread] = low + np.searchsorted(launched[low:high], start[on_thread], side="left")
        behind[on_thread] = low + np.searchsorted(launched[low:high], end[on_thread], side="left")
    count = behind - first
    selected = np.flatnonzero((count >= SHORTEST) & (count <= LONGEST))
    return work, _Calls(row=selected, first=first[selected], count=count[selected])


def _numbers(work: _Work, calls: _Calls) -> Ints:
    """Return a number for each call; calls of equal length and number have the same sequence."""
    numbers = np.zeros(len(calls.row), dtype=np.int64)
    number, length = work.code + 1, 1  # a missing name is -1
    while length <= LONGEST:
        of_length = (calls.count >= length) & (calls.count < 2 * length)
        first = calls.first[of_length]
        last = first + calls.count[of_length] - length
        width = int(number.max(initial=0)) + 1
        numbers[of_length] = number[first] * width + number[last]
        together = (
            number[:-length] * width + number[length:] if length < len(number) else number[:0]
        )
        number, length = pd.factorize(together)[0].astype(np.int64), 2 * length
    return numbers


def _texts(trace: Trace, work: _Work, calls: _Calls, shown: Ints) -> Iterator[str]:
    names = [short(str(name)) for name in trace.device_events["name"].cat.categories]
    names.append("?")
    for call in shown.tolist():
        codes = work.code[calls.first[call] : calls.first[call] + calls.count[call]]
        yield ARROW.join(names[code] for code in codes.tolist())
