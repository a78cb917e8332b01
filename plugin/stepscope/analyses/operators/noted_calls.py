"""Operators of a trace that the recorder noted in the unrecorded steps before it.

A call is known by its name, its shapes and its number among the step's calls with both. Where a
recorded step has another number of these calls, the first ones are taken, as many as were noted.
Where the trace has no call of these shapes (batches of other lengths), those count that have as
many dimensions, and the last dimension, which mostly is a layer's.
"""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.operators.product_shapes import distinct, tensor_shapes
from stepscope.analyses.settings.tensor_values import NotedCalls, Shapes
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

Key = tuple[str, Shapes]
NO_ROWS = np.empty(0, dtype=np.int64)
MOST_BETWEEN_NS = 200_000
"""Host code between two noted calls that belongs to them."""


def noted_rows(trace: Trace, noted: Iterable[NotedCalls]) -> Ints:
    """Return the rows of `host_calls` of noted calls, in all complete steps, in order."""
    rows = [NO_ROWS, *(_rows(trace, calls) for calls in noted)]
    return np.unique(np.concatenate(rows))


def noted_times(trace: Trace, rows: Ints) -> Intervals:
    """Return the times of noted calls, with the host code between one and the next."""
    start, end = (trace.host_calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    times = intervals.union(start, end)
    gaps = times[1:, 0] - times[:-1, 1]
    starts = np.flatnonzero(np.append(True, gaps > MOST_BETWEEN_NS))
    last = np.append(starts[1:], len(times)) - 1
    return np.stack([times[starts, 0], times[last, 1]], axis=1) if len(times) else times


def _rows(trace: Trace, noted: NotedCalls) -> Ints:
    rows, step = calls_by_key(trace).get((noted.name, noted.shapes), (NO_ROWS, NO_ROWS))
    is_alike = not len(rows)
    if is_alike:
        kind = noted.name, _kind(noted.shapes)
        rows, step = _calls_by_kind(trace).get(kind, (NO_ROWS, NO_ROWS))
    if not len(rows):
        return NO_ROWS
    first = np.flatnonzero(np.append(True, np.diff(step) != 0))
    ordinal = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    number = np.repeat(np.diff(np.append(first, len(rows))), np.diff(np.append(first, len(rows))))
    is_same = np.full(len(rows), not is_alike) & (number == (noted.total or number))
    edges = np.array(noted.ranges, dtype=np.int64).reshape(-1, 2)
    is_inside = np.zeros(len(rows), dtype=bool)
    for begin, end in edges.tolist():
        is_inside |= (ordinal >= begin) & (ordinal <= end)
    count = int((edges[:, 1] - edges[:, 0] + 1).sum())
    is_noted = np.where(is_same, is_inside, ordinal < count)
    selected: Ints = rows[is_noted]
    return selected


@computed
def calls_by_key(trace: Trace) -> Mapping[Key, tuple[Ints, Ints]]:
    """Return the operators of complete steps by name and shapes: rows and steps, in order."""
    frame, steps = trace.host_calls, complete_steps(trace).steps
    start = frame["start_ns"].to_numpy()
    step = np.searchsorted(steps["start_ns"].to_numpy(), start, side="right") - 1
    is_inside = step >= 0
    is_inside &= start < np.append(steps["end_ns"].to_numpy(), 0)[step]
    rows = np.flatnonzero(is_inside & frame["is_operator"].to_numpy())
    rows = rows[np.argsort(start[rows], kind="stable")]
    group, names = distinct(trace, rows)
    by_key: dict[Key, list[Ints]] = {}
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []
    for part in parts:
        name, dims = names[group[part[0]]]
        if (shapes := _shapes(dims)) is not None:
            by_key.setdefault((name, shapes), []).append(part)
    merged = {key: np.sort(np.concatenate(parts_of)) for key, parts_of in by_key.items()}
    return {key: (rows[index], step[rows[index]]) for key, index in merged.items()}


Kind = tuple[tuple[int, ...], int]
"""Numbers of dimensions, and the last size of the last tensor; -1 without a tensor."""


def _kind(shapes: Shapes) -> Kind:
    return tuple(len(sizes) for sizes in shapes), shapes[-1][-1] if shapes else -1


@computed
def _calls_by_kind(trace: Trace) -> Mapping[tuple[str, Kind], tuple[Ints, Ints]]:
    """Return the operators of complete steps by name and kind of shapes."""
    by_kind: dict[tuple[str, Kind], list[tuple[Ints, Ints]]] = {}
    for (name, shapes), calls in calls_by_key(trace).items():
        by_kind.setdefault((name, _kind(shapes)), []).append(calls)
    merged = {}
    for key, parts in by_kind.items():
        rows, step = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(trace.host_calls["start_ns"].to_numpy()[rows], kind="stable")
        merged[key] = rows[order], step[order]
    return merged


def _shapes(dims: str) -> Shapes | None:
    """Return the shapes of the tensors with dimensions; None where they are damaged."""
    try:
        shapes = tuple(sizes for sizes in tensor_shapes(json.loads(dims or "[]")) if sizes)
    except (ValueError, TypeError, RecursionError):
        return None
    return shapes if all(type(size) is int for sizes in shapes for size in sizes) else None
