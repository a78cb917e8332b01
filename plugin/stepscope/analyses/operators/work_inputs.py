"""Recorded inputs of an operator, and its work."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from stepscope.model.frames.data_types import BYTES, data_type

Shape = tuple[int, ...]
NO_SHAPES = "Shapes of its inputs were not recorded."
NO_TYPES = "Types of its inputs were not recorded."
NO_VALUES = "Values of its arguments were not recorded, on which its result depends."
MOST_LISTED = 30
"""Tensors in a list of which torch records shapes (`torch/csrc/profiler/util.cpp`)."""
NO_LIST_SHAPES = (
    f"Shapes of the tensors in the list are not recorded: torch does for up to {MOST_LISTED}."
)
NO_LIST_TYPES = "Types of the tensors in lists are not recorded, nor in the kernel's name."
UNFIT = "The recorded shapes do not fit the operator."
TAGS = frozenset({"Int", "Double", "Bool", "Scalar", "Device", "String"})
"""Arguments that are no tensors: until torch 1.13 numbers were written by these names."""


class UnknownWorkError(ValueError):
    """The recorded inputs do not determine the work; the text is the reason."""

    def __init__(self, reason: str = UNFIT) -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class Tensor:
    """A recorded tensor."""

    shape: Shape
    data_type: str | None
    """torch's name; None where only the size of an element was recorded."""
    element_bytes: int
    stored: int
    """Elements in memory: an expanded one counts once."""

    @property
    def elements(self) -> int:
        """Return the number of elements by shape."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        return self.stored * self.element_bytes


def stored_elements(shape: Shape, strides: object) -> int:
    """Return the number of elements in memory; by the shape where strides were not recorded.

    A dimension of stride 0 repeats one element; windows that overlap fill no more than their span.
    """
    count = prod(shape)
    if not count or not isinstance(strides, list) or len(strides) != len(shape):
        return count
    if not all(isinstance(stride, int) for stride in strides):
        return count
    pairs = list(zip(shape, strides, strict=True))
    span = 1 + sum((size - 1) * abs(stride) for size, stride in pairs)
    return min(prod(size for size, stride in pairs if stride), int(span))


@dataclass(frozen=True)
class Inputs:
    """Recorded inputs of an operator: shapes, types, values and strides, by index."""

    shapes: list[Any]
    types: list[Any]
    values: list[Any]
    strides: list[Any] = field(default_factory=list)
    list_types: tuple[str | int, ...] = ()
    """Types, or bytes per element, of the lists of tensors: the last is that of further lists."""

    def __len__(self) -> int:
        return len(self.shapes)

    def shape(self, index: int, *, rank: int | None = None) -> Shape:
        """Return a tensor's shape.

        Raises:
            UnknownWorkError: there is no tensor, or not one of `rank` dimensions.
        """
        sizes = self.shapes[index] if index < len(self.shapes) else None
        if not self.shapes:
            raise UnknownWorkError(NO_SHAPES)
        if not isinstance(sizes, list) or not all(_is_size(size) for size in sizes):
            raise UnknownWorkError
        if (rank is not None and len(sizes) != rank) or not self.is_tensor(index, sizes):
            raise UnknownWorkError
        return tuple(sizes)

    def has(self, index: int) -> bool:
        """Return whether an argument is a tensor of recorded type."""
        return self.type_of(index) is not None

    def tensor(self, index: int) -> Tensor:
        """Return a tensor.

        Raises:
            UnknownWorkError: there is none, or its shape or type was not recorded.
        """
        if not self.types:
            raise UnknownWorkError(NO_TYPES if self.shapes else NO_SHAPES)
        shape, name = self.shape(index), self.type_of(index)
        if name is None:
            raise UnknownWorkError
        return Tensor(shape, name, BYTES[name], stored_elements(shape, self._strides(index)))

    def tensors(self, first: int, behind: int | None = None) -> list[Tensor]:
        """Return the tensors among the arguments from an index to before another."""
        behind = len(self) if behind is None else min(behind, len(self))
        if not self.types:
            raise UnknownWorkError(NO_TYPES if self.shapes else NO_SHAPES)
        return [self.tensor(index) for index in range(first, behind) if self.has(index)]

    def is_list(self, index: int) -> bool:
        """Return whether an argument is a list of tensors."""
        return index < len(self.types) and self.types[index] == "TensorList"

    def listed(self, index: int) -> list[Tensor]:
        """Return the tensors of a list; an empty one where none is recorded.

        Raises:
            UnknownWorkError: it is no list of tensors, or their type is unknown.
        """
        if not self.is_list(index):
            raise UnknownWorkError(NO_TYPES if not self.types else UNFIT)
        shapes = self.shapes[index] if index < len(self.shapes) else []
        strides = self._strides(index)
        strides = strides if isinstance(strides, list) and len(strides) == len(shapes) else []
        tensors = []
        name, size = self._list_type(index) if shapes else (None, 0)
        for position, sizes in enumerate(shapes):
            if not isinstance(sizes, list) or not all(_is_size(number) for number in sizes):
                raise UnknownWorkError
            shape = tuple(sizes)
            stored = stored_elements(shape, strides[position] if strides else None)
            tensors.append(Tensor(shape, name, size, stored))
        return tensors

    def _list_type(self, index: int) -> tuple[str | None, int]:
        if not self.list_types:
            raise UnknownWorkError(NO_LIST_TYPES)
        order = sum(map(self.is_list, range(index)))
        listed = self.list_types[min(order, len(self.list_types) - 1)]
        return (None, listed) if isinstance(listed, int) else (listed, BYTES[listed])

    def _strides(self, index: int) -> object:
        return self.strides[index] if index < len(self.strides) else None

    def is_tensor(self, index: int, sizes: list[Any]) -> bool:
        """Return whether an input is a tensor; without recorded types, by its dimensions."""
        return self.type_of(index) is not None if self.types else bool(sizes)

    def type_of(self, index: int) -> str | None:
        """Return a tensor's type by torch's name; None for no tensor or where not recorded."""
        written = str(self.types[index]) if index < len(self.types) else ""
        return None if written in TAGS else data_type(written)

    def value(self, index: int) -> str:
        """Return a value as torch wrote it; empty for tensors and None."""
        if index >= len(self.values):
            raise UnknownWorkError(UNFIT if self.values else NO_VALUES)
        return str(self.values[index])

    def numbers(self, index: int, count: int) -> Shape:
        """Return a list of numbers; a single number stands for all."""
        text = self.value(index).replace("True", "1").replace("False", "0")
        try:
            given = json.loads(text)
        except ValueError as error:
            raise UnknownWorkError from error
        listed = given if isinstance(given, list) else [given]
        listed = listed * count if len(listed) == 1 else listed
        if len(listed) != count or not all(_is_size(number) for number in listed):
            raise UnknownWorkError
        return tuple(listed)

    def signed(self, index: int) -> list[int]:
        """Return the whole numbers in an argument's value, which may be negative."""
        if not self.values:
            raise UnknownWorkError(NO_VALUES)
        text = self.value(index)
        if not re.fullmatch(r"\[?[-\d, ]*\]?", text):
            raise UnknownWorkError
        return [int(number) for number in re.findall(r"-?\d{1,19}", text)]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Least work of an operator."""

    flops: int | None
    """None: unknown, as of packed sequences."""
    outputs: tuple[Shape, ...]
    """Shapes of the outputs."""
    output_type: str | None = None
    """Type of the outputs where it is not the operand's."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Arithmetic and least traffic of an operator; None: unknown, see `note`."""

    flops: int | None
    moved_bytes: int | None
    """Each input read once, each output written once; in place: read and written."""
    data_type: str | None
    """Type of the arithmetic."""
    note: str | None = None


TrafficFormula = Callable[[Inputs], Traffic]


def new_tensor(shape: Shape, name: str) -> Tensor:
    """Return a dense tensor."""
    return Tensor(shape, name, BYTES[name], prod(shape))


def traffic(
    read: Sequence[Tensor], written: Sequence[Tensor], flops: int | None, note: str | None = None
) -> Traffic:
    """Return the traffic of tensors that are read and written once."""
    first = next(iter((*read, *written)), None)
    return Traffic(
        flops=flops,
        moved_bytes=sum(tensor.bytes for tensor in (*read, *written)),
        data_type=first.data_type if first else None,
        note=note,
    )


def like(tensor: Tensor, shape: Shape | None = None, name: str | None = None) -> Tensor:
    """Return a dense tensor of the type and shape of another, unless they are given."""
    return new_tensor(tensor.shape if shape is None else shape, name or str(tensor.data_type))


def picked(tensor: Tensor, elements: int) -> Tensor:
    """Return the part of a tensor of which some elements are picked, at most all."""
    return Tensor(
        tensor.shape, tensor.data_type, tensor.element_bytes, min(tensor.stored, elements)
    )


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= 0
