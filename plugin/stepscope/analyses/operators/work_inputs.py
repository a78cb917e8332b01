"""Recorded inputs of an operator, and its work."""

import json
from dataclasses import dataclass
from typing import Any

from stepscope.model.frames.data_types import data_type

Shape = tuple[int, ...]


class UnknownWorkError(ValueError):
    """The recorded inputs do not determine the work."""


@dataclass(frozen=True)
class Inputs:
    """Recorded inputs of an operator: shapes, types and values, by index."""

    shapes: list[Any]
    types: list[Any]
    values: list[Any]

    def shape(self, index: int, *, rank: int | None = None) -> Shape:
        """Return a tensor's shape.

        Raises:
            UnknownWorkError: there is no tensor, or not one of `rank` dimensions.
        """
        sizes = self.shapes[index] if index < len(self.shapes) else None
        if not isinstance(sizes, list) or not all(_is_size(size) for size in sizes):
            raise UnknownWorkError
        if (rank is not None and len(sizes) != rank) or not self.is_tensor(index, sizes):
            raise UnknownWorkError
        return tuple(sizes)

    def is_tensor(self, index: int, sizes: list[Any]) -> bool:
        """Return whether an input is a tensor; without recorded types, by its dimensions."""
        return self.type_of(index) is not None if self.types else bool(sizes)

    def type_of(self, index: int) -> str | None:
        """Return a tensor's type by torch's name; None for no tensor or where not recorded."""
        return data_type(str(self.types[index])) if index < len(self.types) else None

    def value(self, index: int) -> str:
        """Return a value as torch wrote it; empty for tensors and None."""
        if index >= len(self.values):
            raise UnknownWorkError
        return str(self.values[index])

    def numbers(self, index: int, count: int) -> Shape:
        """Return a list of numbers; a single number stands for all."""
        try:
            given = json.loads(self.value(index).replace("True", "1").replace("False", "0"))
        except ValueError as error:
            raise UnknownWorkError from error
        listed = given if isinstance(given, list) else [given]
        listed = listed * count if len(listed) == 1 else listed
        if len(listed) != count or not all(_is_size(number) for number in listed):
            raise UnknownWorkError
        return tuple(listed)


@dataclass(frozen=True, kw_only=True)
class Work:
    """Least work of an operator."""

    flops: int
    outputs: tuple[Shape, ...]
    """Shapes of the outputs."""
    output_type: str | None = None
    """Type of the outputs where it is not the operand's."""


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= 0
