"""Generations that compute the whole sequence again for each new token.

A call of a model begins with the embedding of its token ids. Successive calls on a thread whose ids
are of the same number of sequences, and each by one position longer, are one generation. Of a call
of `length` positions, the work of the last one remains with a cache of keys and values. How much of
its time that is, follows from the calls' times by length: `time = base + slope * length`, by the
median slope of all pairs (Theil and Sen). Where the lengths differ little, as after a long prompt,
jitter would decide the slope: then the operators' time beyond `CALL_NS` each counts as growing with
the length.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

EMBEDDING = "aten::embedding"
LEAST_CALLS = 4
"""Successive calls of a generation; a window may hold a part of it."""
WIDE = 1.5
"""Longest sequence over the shortest, from which the calls' times show the slope."""
CALL_NS = 10_000
"""Self time of an operator that does not depend on the length."""
MOST_PAIRED = 60
"""Calls of a generation whose pairs give the slope."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GrowingSequences:
    """Calls of all generations; arrays are parallel."""

    rows: Ints
    """Embeddings (rows of `host_calls`) with which the calls begin."""
    start_ns: Ints
    end_ns: Ints
    """Start of the next call."""
    length: Ints
    """Positions of the sequence."""
    repeated_share: float
    """Fraction of the calls' time in positions of before, from 0 to 1."""
    generation_count: int


@computed
def growing_sequences(trace: Trace) -> GrowingSequences:
    """Return the calls of generations in the window, without each generation's last call."""
    calls, span = trace.host_calls, window(trace)
    start = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], EMBEDDING.__eq__))
    rows = rows[(start[rows] >= span.start_ns) & (start[rows] < span.end_ns)]
    rows = rows[np.argsort(start[rows], kind="stable")]
    group, names = distinct(trace, rows)
    shapes = [(shape(dims, 0), shape(dims, 1)) for _, dims in names]
    thread = calls["thread"].cat.codes.to_numpy()[rows]
    ids = [shapes[kind][1] for kind in group.tolist()]
    keys = [(shapes[kind][0], *ids[index][:-1]) for index, kind in enumerate(group.tolist())]
    parts = _generations(list(zip(keys, thread.tolist(), strict=True)), ids)
    index = np.array([i for run in parts for i in run[:-1]], dtype=np.int64)
    following = np.array([i for run in parts for i in run[1:]], dtype=np.int64)
    begin, end = start[rows[index]], start[rows[following]]
    length = np.array([ids[i][-1] for i in index.tolist()], dtype=np.int64)
    return GrowingSequences(
        rows=rows[index],
        start_ns=begin,
        end_ns=end,
        length=length,
        repeated_share=_repeated_share(trace, length, begin, end),
        generation_count=len(parts),
    )


def _generations(keys: list[Hashable], ids: list[tuple[int, ...]]) -> list[list[int]]:
    """Return indices of the calls of each generation; `keys` tell tables and threads apart.

    Of a model's several embeddings (tokens, positions), the first is its call's begin.
    """
    runs: list[list[int]] = []
    latest: dict[Hashable, list[int]] = {}
    for index, sizes in enumerate(ids):
        if len(sizes) not in (1, 2):
            continue
        run = latest.get(keys[index])
        if run and sizes[-1] == ids[run[-1]][-1] + 1:
            run.append(index)
        else:
            latest[keys[index]] = [index]
            runs.append(latest[keys[index]])
    parts: list[list[int]] = []
    for run in runs:
        if len(run) >= LEAST_CALLS and (not parts or run[0] > parts[-1][-1]):
            parts.append(run)
    return parts


def _repeated_share(trace: Trace, length: Ints, start_ns: Ints, end_ns: Ints) -> float:
    """Return the fraction of the calls' time that is proportional to the positions of before."""
    if len(length) < LEAST_CALLS:
        return 0.0
    growing_ns = (
        _slope(length, end_ns - start_ns) * length
        if length.max() >= WIDE * length.min()
        else _beyond_calls(trace, start_ns, end_ns)
    )
    repeated = float((growing_ns * (length - 1) / length).sum())
    return min(1.0, repeated / max(1, int((end_ns - start_ns).sum())))


def _slope(length: Ints, duration_ns: Ints) -> float:
    """Return the median slope of pairs of calls, ns per position, at least 0."""
    sample = np.linspace(0, len(length) - 1, min(len(length), MOST_PAIRED)).astype(np.int64)
    slopes = [
        (duration_ns[right] - duration_ns[left]) / (length[right] - length[left])
        for left, right in combinations(sample.tolist(), 2)
        if length[left] != length[right]
    ]
    return max(0.0, float(np.median(slopes))) if slopes else 0.0


def _beyond_calls(trace: Trace, start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the operators' self time beyond `CALL_NS` each, per call of the model, in ns."""
    calls = trace.host_calls
    is_operator = calls["is_operator"].to_numpy()
    begin = calls["start_ns"].to_numpy()[is_operator]
    beyond = np.maximum(0, calls["self_ns"].to_numpy()[is_operator] - CALL_NS)
    order = np.argsort(begin, kind="stable")
    total = np.concatenate([[0], np.cumsum(beyond[order])])
    first, last = (np.searchsorted(begin[order], times) for times in (start_ns, end_ns))
    return np.asarray(total[last] - total[first], dtype=np.int64)
