"""How much memory a recording takes: its columns, and what was computed of them.

Sizes are of arrays and texts, as good as a budget needs; what several results share is counted
once where it is the same object.
"""

from collections.abc import Collection, Iterable, Mapping
from sys import getsizeof
from typing import Any

import numpy as np
import pandas as pd

from stepscope.model.trace import Trace

LOOKED_AT = 1000
"""Items of a long list that are measured; the rest is taken to be like them."""
DEEPEST = 12


def columns_bytes(trace: Trace) -> int:
    """Return what the events themselves take."""
    return size_bytes(trace.columns) + trace.source.kinds.nbytes


def results_bytes(trace: Trace) -> int:
    """Return what was computed of the events and can be let go of: frames, tables, answers."""
    return size_bytes(dict(trace.results))


def small_results(trace: Trace, largest_bytes: int) -> dict[str, Any]:
    """Return what was computed of a recording and is small: that is worth sending elsewhere."""
    return {
        name: result
        for name, result in dict(trace.results).items()
        if size_bytes(result) <= largest_bytes
    }


def size_bytes(value: object) -> int:
    """Return about how much memory a value takes."""
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
    """Return what a value holds: of a mapping its values, of an object its fields."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if callable(value):
        return ()
    names: Iterable[str] = getattr(value, "__struct_fields__", getattr(value, "__dict__", ()))
    return [getattr(value, name, None) for name in names]


def _sizes(values: Iterable[object], count: int, seen: set[int], depth: int) -> int:
    """Return what some values take together; of many, only every n-th is measured."""
    every = max(1, count // LOOKED_AT)
    measured = sum(
        _size(value, seen, depth - 1) for place, value in enumerate(values) if place % every == 0
    )
    return measured * every
