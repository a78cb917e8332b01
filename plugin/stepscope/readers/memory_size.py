"""Approximate memory of traces: their columns, and the results cached on them.

Arrays and texts are measured; an object shared by several results counts once.
"""

from collections.abc import Collection, Iterable, Mapping
from sys import getsizeof
from typing import Any

import numpy as np
import pandas as pd

from stepscope.model.trace import Trace

SAMPLED_COUNT = 1000
"""Number of items of a long list to measure; the others are assumed to have the same mean size."""
DEEPEST = 12


def columns_bytes(trace: Trace) -> int:
    """Return the bytes of a trace's events."""
    return size_bytes(trace.columns) + trace.source.kinds.nbytes


def results_bytes(trace: Trace) -> int:
    """Return the bytes of the results cached on a trace."""
    return size_bytes(dict(trace.results))


def small_results(trace: Trace, largest_bytes: int) -> dict[str, Any]:
    """Return the cached results up to a size."""
    results = dict(trace.results)
    return {name: value for name, value in results.items() if size_bytes(value) <= largest_bytes}


def size_bytes(value: object) -> int:
    """Return the approximate memory of a value."""
    return _size(value, set(), DEEPEST)


def _size(value: object, seen: set[int], depth: int) -> int:
    if id(value) in seen or depth == 0:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray | pd.Index | pd.api.extensions.ExtensionArray):
        return int(value.nbytes)
    if isinstance(value, pd.DataFrame | pd.Series):
        return int(np.sum(value.memory_usage(deep=False)))
    parts = _parts(value)
    return getsizeof(value) + _sizes(parts, len(parts), seen, depth)


def _parts(value: object) -> Collection[object]:
    """Return the values of a mapping, the items of a list, the fields of an object."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if callable(value):
        return ()
    names: Iterable[str] = getattr(value, "__struct_fields__", getattr(value, "__dict__", ()))
    return [getattr(value, name, None) for name in names]


def _sizes(values: Iterable[object], count: int, seen: set[int], depth: int) -> int:
    every = max(1, count // SAMPLED_COUNT)
    measured = sum(
        _size(value, seen, depth - 1) for index, value in enumerate(values) if index % every == 0
    )
    return measured * every
