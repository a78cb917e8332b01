"""Repeated sequences of kernels, which could be one kernel or a graph.

A sequence is two to eight kernels, one behind the other on a stream, with no copy, memory set or
collective between them, which no single kernel could replace. Those that would save most launches
come first (one fused kernel launches once); a kernel is given to the first that has it, so no
launch is counted twice. HTA looks for sequences within one operator that the user names
(`get_frequent_cuda_kernel_sequences`); that is `operators/kernel_runs.py`.

Every sequence of n kernels has the number of its first n - 1 and of its last kernel, made small
again by sorting: exact, and linear in the number of kernels.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.devices.queue_length import stream_numbers
from stepscope.dialects import Kind
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed

LONGEST = 8
LEAST_COUNT = 2
MOST_TRIED = 60
"""Sequences that are looked at, of each length."""
MOST_ROWS = 100
ARROW = " → "
SCHEMA: Schema = (
    Column("sequence", "object", "text", "The kernels' names in short, in the order they ran."),
    Column("kernel_count", "int64", "count", "How many kernels it is."),
    Column("occurrence_count", "int64", "count", "How often it ran; no kernel is in two."),
    Column("saved_launch_count", "int64", "count", "Launches fewer, were each one kernel."),
    Column("kernel_ns", "int64", "ns", "Sum of its kernels' durations, of all occurrences."),
    Column("gap_ns", "int64", "ns", "Time between its kernels in which the stream was idle."),
    Column("mean_kernel_ns", "float64", "ns", "Mean duration of its kernels."),
    Column("kernel_share", "float64", "share", "Of the durations of all kernels."),
    Column("operators", "object", "text", "Who launched each, where it ran first; `?`: unknown."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Kernels:
    """Kernels by stream, in the order they began."""

    row: Ints
    """Rows of `device_events`."""
    code: Ints
    """Codes of their names, from 1; 0 for none."""
    run: Ints
    """The number of the uninterrupted run that each belongs to."""
    start_ns: Ints
    end_ns: Ints
    all_ns: int
    """Sum of the durations of all kernels, collectives too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    length: int
    places: Ints
    """Where it begins, in order."""

    @property
    def most_saved(self) -> int:
        """Launches saved, if none of its kernels were taken."""
        return (self.length - 1) * len(self.places)


@public_table(
    "kernel-sequences",
    SCHEMA,
    "One row per sequence of kernels that recurs on a stream: candidates for a fused kernel or a"
    " graph, with the launches that would save. At most 100; a kernel is in one of them only.",
)
@computed
def kernel_sequences(trace: Trace) -> pd.DataFrame:
    """Return one row a sequence, the most launches first, at most `MOST_ROWS`."""
    kernels = _kernels(trace)
    is_taken = np.zeros(len(kernels.row), dtype=bool)
    rows: list[dict[str, object]] = []
    for candidate in sorted(_candidates(kernels), key=lambda of: -of.most_saved):
        places = _free(candidate, is_taken)
        if len(places) >= LEAST_COUNT and len(rows) < MOST_ROWS:
            is_taken[places[:, np.newaxis] + np.arange(candidate.length)] = True
            rows.append(_row(trace, kernels, places, candidate.length))
    return rows_to_frame(SCHEMA, rows, "-saved_launch_count", "sequence")


def _kernels(trace: Trace) -> _Kernels:
    events = trace.device_events
    stream, _ = stream_numbers(events)
    order = np.argsort(stream, kind="stable")
    is_kernel = events["kind"].to_numpy() == int(Kind.KERNEL)
    is_candidate = (is_kernel & ~events["is_collective"].to_numpy())[order]
    where = stream[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (where[1:] != where[:-1]) | ~is_candidate[:-1]
    row = order[is_candidate]
    return _Kernels(
        row=row,
        code=events["name"].cat.codes.to_numpy()[row].astype(np.int64) + 1,
        run=np.cumsum(begins)[is_candidate],
        start_ns=events["start_ns"].to_numpy()[row],
        end_ns=events["end_ns"].to_numpy()[row],
        all_ns=int(events["duration_ns"].to_numpy()[is_kernel].sum()),
    )


def _candidates(kernels: _Kernels) -> list[_Candidate]:
    """Return, of each length, the sequences that occur most."""
    candidates: list[_Candidate] = []
    width = int(kernels.code.max(initial=0)) + 1
    position, number = np.arange(len(kernels.code)), kernels.code
    for length in range(2, LONGEST + 1):
        inside = position <= len(kernels.code) - length
        position, number = position[inside], number[inside]
        inside = kernels.run[position + length - 1] == kernels.run[position]
        position, number = position[inside], number[inside]
        number, values = pd.factorize(number * width + kernels.code[position + length - 1])
        count = np.bincount(number, minlength=len(values))
        often = count[number] >= LEAST_COUNT
        position, number = position[often], number[often]
        if not len(position):
            break
        candidates += _most_frequent(position, number, count, length)
    return candidates


def _most_frequent(position: Ints, number: Ints, count: Ints, length: int) -> list[_Candidate]:
    frequent = np.argsort(-count, kind="stable")[:MOST_TRIED]
    selected = np.full(len(count), -1)
    selected[frequent] = np.arange(len(frequent))
    which = selected[number]
    position, which = position[which >= 0], which[which >= 0]
    by_sequence = np.split(
        position[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1]
    )
    return [_Candidate(length=length, places=places) for places in by_sequence if len(places) > 1]


def _free(candidate: _Candidate, is_taken: Mask) -> Ints:
    """Return where it begins such that none of its kernels is taken, nor in two of them."""
    places = candidate.places
    for offset in range(candidate.length):
        places = places[~is_taken[places + offset]]
    return without_overlaps(places, candidate.length)


def without_overlaps(places: Ints, length: int) -> Ints:
    """Return the first position, then always the next that begins behind the last one taken.

    Each position leads to the next behind it; doubling follows the chain from the first.
    """
    count = len(places)
    if count < 2 or bool((places[1:] - places[:-1] >= length).all()):
        return places
    leads_to = np.append(np.searchsorted(places, places + length), count)
    is_reached = np.zeros(count + 1, dtype=bool)
    is_reached[0] = True
    reached = np.zeros(1, dtype=np.int64)
    while len(reached):
        reached = leads_to[np.flatnonzero(is_reached)]
        reached = reached[~is_reached[reached]]
        is_reached[reached] = True
        leads_to = leads_to[leads_to]
    return places[is_reached[:-1]]


def _row(trace: Trace, kernels: _Kernels, places: Ints, length: int) -> dict[str, object]:
    members = places[:, np.newaxis] + np.arange(length)
    start, end = kernels.start_ns[members], kernels.end_ns[members]
    kernel_ns = int((end - start).sum())
    until = np.maximum.accumulate(end, axis=1)
    first = kernels.row[members[0]]
    names = trace.device_events["name"].iloc[first]
    return {
        "sequence": ARROW.join(short(str(name)) for name in names),
        "kernel_count": length,
        "occurrence_count": len(places),
        "saved_launch_count": (length - 1) * len(places),
        "kernel_ns": kernel_ns,
        "gap_ns": int(np.maximum(start[:, 1:] - until[:, :-1], 0).sum()),
        "mean_kernel_ns": kernel_ns / members.size,
        "kernel_share": kernel_ns / kernels.all_ns if kernels.all_ns else np.nan,
        "operators": ARROW.join(_owners(trace, first)),
    }


def _owners(trace: Trace, rows: Ints) -> list[str]:
    names = trace.host_calls["name"]
    owners = links(trace).owner_of_device_event[rows]
    return [str(names.iloc[owner]) if owner >= 0 else "?" for owner in owners.tolist()]
