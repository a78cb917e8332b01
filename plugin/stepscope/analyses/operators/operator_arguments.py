"""Single arguments of an operator, from the profiler's JSON lists."""

import json
from typing import Any

MOST = 2**63
"""Larger numbers are no sizes."""


def argument(arguments: str, index: int) -> str:
    """Return an argument as text (`True`, `float`); "" where there is none."""
    value = _at(arguments, index)
    return "" if value is None else str(value)


def shape(dims: str, index: int) -> tuple[int, ...]:
    """Return the shape of an input; () where it is no tensor or not recorded."""
    value = _at(dims, index)
    sizes = value if isinstance(value, list) else []
    return tuple(sizes) if all(type(size) is int and 0 <= size < MOST for size in sizes) else ()


def _at(text: str, index: int) -> Any:  # noqa: ANN401 (whatever is written)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values[index] if isinstance(values, list) and len(values) > index else None
