"""One argument of an operator, from the lists that the profiler writes of them as JSON text."""

import json
from typing import Any

MOST = 2**63
"""What is as large is no size."""


def argument(arguments: str, index: int) -> str:
    """Return the argument at a place as text (`True`, `float`); "" where there is none."""
    value = _at(arguments, index)
    return "" if value is None else str(value)


def shape(dims: str, index: int) -> tuple[int, ...]:
    """Return the shape of the input at a place; () where it is no tensor, or none is written."""
    value = _at(dims, index)
    sizes = value if isinstance(value, list) else []
    return tuple(sizes) if all(type(size) is int and 0 <= size < MOST for size in sizes) else ()


def _at(text: str, index: int) -> Any:  # noqa: ANN401 (whatever is written)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values[index] if isinstance(values, list) and len(values) > index else None
