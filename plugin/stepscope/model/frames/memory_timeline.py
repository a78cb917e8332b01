"""Memory over time by purpose, from `export_memory_timeline`.

`.json` and `.json.gz` contain `[times, sizes]`: microseconds, and for each time a 0 and the bytes
of every category. `.raw.json.gz` contains `[time, action, bytes, category]` lists: nanoseconds, -1
for memory allocated before. Both are written by `torch/profiler/_memory_profiler.py`
(`MemoryProfileTimeline`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.base.errors import UnreadableError
from stepscope.ingest.memory_files import MemoryDocument
from stepscope.model.arrays import Ints

CATEGORIES = {
    "parameter": "Weights and buffers of the model.",
    "optimizer_state": "State of the optimizer, such as momentum.",
    "input": "Input of the model.",
    "temporary": "Allocated and freed in about one operator.",
    "activation": "Stored by the forward pass for the backward pass.",
    "gradient": "Gradients of parameters.",
    "autograd_detail": "Allocated by autograd, but no gradient of a parameter.",
    "unknown": "Unknown to torch.",
}
"""In torch's order (`_CATEGORY_TO_COLORS`)."""
EXPORT_AGAIN = "Export it again: prof.export_memory_timeline('memory.json.gz')."
ACTIONS = range(1, 5)
"""Pre-existing, create, increment version, destroy."""
MOST_BYTES = 2**53


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryTimeline:
    """The bytes of every category at each time."""

    time_ns: Ints
    """From the first time; distinct and ascending."""
    sizes_bytes: Ints
    """One row per time, one column per category of `CATEGORIES`."""
    is_raw: bool
    """Whether times are exact to the nanosecond, otherwise to the microsecond."""


def timeline_of(document: MemoryDocument) -> MemoryTimeline:
    """Return the memory timeline in a document.

    Raises:
        UnreadableError: The document has another format, or implausible values.
    """
    try:
        return _of_lists(document.content)
    except (TypeError, ValueError, OverflowError) as error:
        message = "This is not a memory timeline: its lists are not in torch's format."
        raise UnreadableError(document.path, message, EXPORT_AGAIN) from error


def _of_lists(content: object) -> MemoryTimeline:
    if not isinstance(content, list):
        raise TypeError
    if len(content) == 2 and isinstance(content[0], list) and _is_pair(content):
        return _of_sizes(*content)
    return _of_events(content)


def _is_pair(content: list[Any]) -> bool:
    """Return whether the content is `[times, sizes]`, not two events."""
    return isinstance(content[1], list) and all(isinstance(row, list) for row in content[1][:1])


def _of_sizes(times: list[Any], sizes: list[Any]) -> MemoryTimeline:
    width = len(CATEGORIES) + 1
    table = _table(sizes, width)
    time_us = _table([times], len(times))[0] if times else np.zeros(0, dtype=np.int64)
    if len(time_us) != len(table):
        raise ValueError
    return _collected(time_us * 1000, table[:, 1:], is_raw=False)


def _of_events(events: list[Any]) -> MemoryTimeline:
    table = _table(events, 4)
    time_ns, action, change, category = table.T
    if not np.isin(action, ACTIONS).all() or not np.isin(category, range(len(CATEGORIES))).all():
        raise ValueError
    if len(table) and np.abs(change.astype(np.float64)).sum() > MOST_BYTES * len(ACTIONS):
        raise ValueError
    first_ns = int(time_ns[time_ns >= 0].min()) if (time_ns >= 0).any() else 0
    time_ns = np.where(time_ns < 0, first_ns, time_ns)
    order = np.argsort(time_ns, kind="stable")
    changes = np.zeros((len(table), len(CATEGORIES)), dtype=np.int64)
    changes[np.arange(len(table)), category[order]] = change[order]
    return _collected(time_ns[order], np.cumsum(changes, axis=0), is_raw=True)


def _table(rows: list[Any], width: int) -> Ints:
    """Return lists of `width` whole numbers as one array.

    Raises:
        TypeError, ValueError: An item is not such a list.
    """
    if not rows:
        return np.zeros((0, width), dtype=np.int64)
    table = np.array(rows)
    if table.dtype.kind not in "iu" or table.ndim != 2 or table.shape[1] != width:
        raise TypeError
    return table.astype(np.int64)


def _collected(time_ns: Ints, sizes: Ints, *, is_raw: bool) -> MemoryTimeline:
    """Return the last sizes of each time; memory allocated before counts at the first time."""
    order = np.argsort(time_ns, kind="stable")
    time_ns, sizes = time_ns[order], sizes[order]
    is_last = np.append(np.diff(time_ns) != 0, True)[: len(time_ns)]
    if len(sizes) and np.abs(sizes).max() > MOST_BYTES:
        raise ValueError
    start_ns = time_ns[0] if len(time_ns) else 0
    return MemoryTimeline(
        time_ns=time_ns[is_last] - start_ns, sizes_bytes=sizes[is_last], is_raw=is_raw
    )
