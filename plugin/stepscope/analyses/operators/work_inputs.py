"""An operator's inputs as recorded, and the work that a formula makes of them."""

import json
from dataclasses import dataclass
from typing import Any

from stepscope.model.frames.data_types import data_type

Shape = tuple[int, ...]


class UnknownWorkError(ValueError):
    """The inputs do not tell how much there was to do."""


@dataclass(frozen=True)
class Inputs:
    """An operator's inputs as recorded: shapes, types and values, by place."""

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
        """Tell whether an input is a tensor; where types are not recorded, by its dimensions."""
        return self.type_of(index) is not None if self.types else bool(sizes)

    def type_of(self, index: int) -> str | None:
        """Return a tensor's type by torch's name; None: it is no tensor, or not recorded."""
        return data_type(str(self.types[index])) if index < len(self.types) else None

    def value(self, index: int) -> str:
        """Return a value as torch wrote it; empty for tensors and None."""
        if index >= len(self.values):
            raise UnknownWorkError
        return str(self.values[index])

    def numbers(self, index: int, count: int) -> Shape:
        """Return a list of numbers; one number alone stands for all."""
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
    """What an operator does at the least."""

    flops: int
    outputs: tuple[Shape, ...]
    """Shapes of what it writes."""
    output_type: str | None = None
    """The outputs' type where it is not the operand's."""


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= 0
