"""The operands of a product of two matrices, of what was recorded of its inputs."""

import json
from collections.abc import Mapping
from types import MappingProxyType

LEFT_OPERAND: Mapping[str, int] = MappingProxyType(
    {
        "aten::mm": 0,
        "aten::bmm": 0,
        "aten::addmm": 1,
        "aten::_addmm_activation": 1,
        "aten::baddbmm": 1,
    }
)
"""The place of a product's left operand; the right one is behind it."""
Pair = tuple[int, int]


def operands(name: str, text: str) -> tuple[Pair, Pair] | None:
    """Return the last two numbers of both operands, of shapes or of strides (JSON).

    Of shapes `((m, k), (k, n))`. None for other operators, and where there are no such numbers.
    """
    at = LEFT_OPERAND.get(name)
    if at is None or not text:
        return None
    try:
        left, right = json.loads(text)[at : at + 2]
        return (int(left[-2]), int(left[-1])), (int(right[-2]), int(right[-1]))
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
