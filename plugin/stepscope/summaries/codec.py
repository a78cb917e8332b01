"""Values of frozen dataclasses as Arrow columns, and back: what a type is follows from annotations.

| annotation | column |
|---|---|
| `bool`, `int`, `float`, `str`, `Literal[…]` of texts | `bool`, `int64`, `double`, `string` |
| `X | None` | X, with nulls |
| a dataclass, a named tuple | a struct of its fields |
| a `msgspec.Struct` | its JSON, a `string` |
| `tuple[X, ...]` | a list of X |
| `tuple[X, Y]` | a struct of `item_0`, `item_1` |
| `dict[str, X]`, `Mapping[str, X]` | a map |
| `NDArray[T]` | a list of T |
| `Annotated[NDArray[T], COLUMNS]` | a list of lists of T: a column each |
| `pandas.DataFrame` of texts | a map of column name to a list of texts |

Columns are encoded and decoded as wholes: a thousand values cost little more than one.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from sys import intern
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

COLUMNS = "columns"
"""Marks, by `Annotated`, an array of two dimensions."""
PLAIN: Mapping[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


class DamagedError(Exception):
    """A column does not hold what it should."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Codec:
    """How values of one type are kept."""

    type: pa.DataType
    encode: Callable[[Sequence[Any]], pa.Array]
    decode: Callable[[pa.Array], list[Any]]
    """Of an array without nulls."""
    is_nullable: bool = False


@cache
def codec(of: Any) -> Codec:  # noqa: ANN401
    """Return how values of an annotated type are kept.

    Raises:
        TypeError: there is no way to keep it.
    """
    found = _plain(of) if of in PLAIN else _of_annotation(of) or _of_class(of)
    if found is None:
        msg = f"{of} cannot be kept"
        raise TypeError(msg)
    return found


def _of_annotation(of: Any) -> Codec | None:  # noqa: ANN401
    origin = get_origin(of)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        origin = Mapping
    of_origin = OF_ORIGINS.get(origin)
    return of_origin(*get_args(of)) if of_origin is not None else None


def _of_class(of: Any) -> Codec | None:  # noqa: ANN401
    if of is pd.DataFrame:
        return _frame()
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        return _json(of)
    fields = field_types(of)
    return _struct(of, fields) if fields else None


def field_types(of: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a dataclass's or a named tuple's fields, and what they are; else nothing."""
    if dataclasses.is_dataclass(of):
        names = [field.name for field in dataclasses.fields(of)]
    else:
        names = list(getattr(of, "_fields", ()))
    hints = get_type_hints(of, include_extras=True) if names else {}
    return {name: hints[name] for name in names}


def fields_of(of: Any) -> pa.Schema:  # noqa: ANN401
    """Return the columns in which values of a dataclass are kept."""
    return pa.schema([_field(name, codec(kind)) for name, kind in field_types(of).items()])


def _field(name: str, of: Codec) -> pa.Field:
    return pa.field(name, of.type, nullable=of.is_nullable)


def _plain(of: Any) -> Codec:  # noqa: ANN401
    kind = PLAIN[of]

    def encode(values: Sequence[Any]) -> pa.Array:
        return pa.array(values, kind)

    return Codec(type=kind, encode=encode, decode=_texts if of is str else _numbers)


def _numbers(array: pa.Array) -> list[Any]:
    return array.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _texts(array: pa.Array) -> list[Any]:
    return _each_once(array, intern)


def _each_once(array: pa.Array, read: Callable[[str], Any]) -> list[Any]:
    """Return what texts are read as; those that are the same are read once, and are one object."""
    distinct = array.dictionary_encode()
    found = [read(text) for text in distinct.dictionary.to_pylist()]
    return [found[code] for code in distinct.indices.to_numpy().tolist()]


def _literal(*words: str) -> Codec:
    def read(text: str) -> str:
        if text not in words:
            msg = f"{text!r} is not one of {words}"
            raise DamagedError(msg)
        return intern(text)

    return dataclasses.replace(_plain(str), decode=lambda array: _each_once(array, read))


def _json(of: type[msgspec.Struct]) -> Codec:
    def encode(values: Sequence[Any]) -> pa.Array:
        return pa.array([msgspec.json.encode(each) for each in values], pa.binary()).cast(
            pa.string()
        )

    decoder = msgspec.json.Decoder(of)
    return Codec(
        type=pa.string(), encode=encode, decode=lambda array: _each_once(array, decoder.decode)
    )


def _optional(*kinds: Any) -> Codec:  # noqa: ANN401
    [kind] = [each for each in kinds if each is not NoneType]
    inner = codec(kind)

    def encode(values: Sequence[Any]) -> pa.Array:
        there = np.array([value is not None for value in values], dtype=bool)
        present = inner.encode([value for value in values if value is not None])
        place = np.cumsum(there) - 1
        return present.take(pa.array(place, pa.int64(), mask=~there))

    def decode(array: pa.Array) -> list[Any]:
        present = iter(inner.decode(array.drop_null()))
        there = array.is_valid().to_numpy(zero_copy_only=False)
        return [next(present) if each else None for each in there.tolist()]

    return Codec(type=inner.type, encode=encode, decode=decode, is_nullable=True)


def _struct(of: Any, fields: Mapping[str, Any]) -> Codec:  # noqa: ANN401
    inner = {name: codec(kind) for name, kind in fields.items()}
    names, own = list(inner), [_field(name, each) for name, each in inner.items()]

    def encode(values: Sequence[Any]) -> pa.Array:
        columns = [
            each.encode([getattr(value, name) for value in values]) for name, each in inner.items()
        ]
        return pa.StructArray.from_arrays(columns, fields=own)

    def decode(array: pa.Array) -> list[Any]:
        columns = [
            decoded(each, part) for each, part in zip(inner.values(), array.flatten(), strict=True)
        ]
        return [
            of(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)
        ]

    return Codec(type=pa.struct(own), encode=encode, decode=decode)


def _tuple(*kinds: Any) -> Codec:  # noqa: ANN401
    return _list(kinds[0]) if kinds[1:] == (Ellipsis,) else _fixed(kinds)


def _fixed(kinds: tuple[Any, ...]) -> Codec:
    inner = [codec(kind) for kind in kinds]
    own = [_field(f"item_{place}", each) for place, each in enumerate(inner)]

    def encode(values: Sequence[Any]) -> pa.Array:
        columns = [
            each.encode([value[place] for value in values]) for place, each in enumerate(inner)
        ]
        return pa.StructArray.from_arrays(columns, fields=own)

    def decode(array: pa.Array) -> list[Any]:
        columns = [decoded(each, part) for each, part in zip(inner, array.flatten(), strict=True)]
        return list(zip(*columns, strict=True))

    return Codec(type=pa.struct(own), encode=encode, decode=decode)


def _list(kind: Any) -> Codec:  # noqa: ANN401
    inner = codec(kind)

    def encode(values: Sequence[Any]) -> pa.Array:
        return _as_lists(values, inner.encode(list(chain.from_iterable(values))), inner)

    def decode(array: pa.Array) -> list[Any]:
        values = decoded(inner, array.flatten())
        return [tuple(values[low:high]) for low, high in pairwise(_bounds(array))]

    return Codec(type=_list_type(inner), encode=encode, decode=decode)


def _map(key: Any, kind: Any) -> Codec:  # noqa: ANN401
    pairs = codec(tuple[tuple[key, kind], ...])
    of = pa.map_(codec(key).type, _field("value", codec(kind)))

    def encode(values: Sequence[Any]) -> pa.Array:
        lists = pairs.encode([tuple(value.items()) for value in values])
        keys, items = lists.values.flatten()
        return pa.MapArray.from_arrays(lists.offsets, keys, items, type=of)

    def decode(array: pa.Array) -> list[Any]:
        bounds = _bounds(array)
        within = slice(array.offsets[0].as_py(), array.offsets[-1].as_py())
        keys = decoded(codec(key), array.keys[within])
        items = decoded(codec(kind), array.items[within])
        found = list(zip(keys, items, strict=True))
        return [dict(found[low:high]) for low, high in pairwise(bounds)]

    return Codec(type=of, encode=encode, decode=decode)


def _annotated(of: Any, *marks: Any) -> Codec:  # noqa: ANN401
    return _of_columns(of) if COLUMNS in marks else codec(of)


def _array(_: Any, dtype: Any) -> Codec:  # noqa: ANN401
    return _of_array(np.dtype(get_args(dtype)[0]))


def _of_array(dtype: np.dtype[Any]) -> Codec:
    kind = pa.from_numpy_dtype(dtype)
    inner = Codec(type=kind, encode=pa.array, decode=_numbers)

    def encode(values: Sequence[Any]) -> pa.Array:
        whole = np.concatenate([np.zeros(0, dtype), *values])
        return _as_lists(values, pa.array(whole.astype(dtype, copy=False)), inner)

    def decode(array: pa.Array) -> list[Any]:
        values = array.flatten()
        if values.null_count:
            msg = "a list of numbers lacks one"
            raise DamagedError(msg)
        whole: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return [whole[low:high] for low, high in pairwise(_bounds(array))]

    return Codec(type=_list_type(inner), encode=encode, decode=decode)


def _of_columns(of: Any) -> Codec:  # noqa: ANN401
    columns = codec(tuple[of, ...])

    def encode(values: Sequence[Any]) -> pa.Array:
        return columns.encode([tuple(value.T) for value in values])

    def decode(array: pa.Array) -> list[Any]:
        return [np.stack(value, axis=1) for value in columns.decode(array)]

    return Codec(type=columns.type, encode=encode, decode=decode)


def _frame() -> Codec:
    columns = codec(Mapping[str, tuple[str, ...]])

    def encode(values: Sequence[Any]) -> pa.Array:
        return columns.encode([{name: tuple(frame[name]) for name in frame} for frame in values])

    def decode(array: pa.Array) -> list[Any]:
        return [
            pd.DataFrame(
                {name: np.array(texts, dtype=object) for name, texts in each.items()}, dtype=object
            )
            for each in columns.decode(array)
        ]

    return Codec(type=columns.type, encode=encode, decode=decode)


def decoded(of: Codec, array: pa.Array) -> list[Any]:
    """Return the values in a column.

    Raises:
        DamagedError: one is missing that has to be there.
    """
    if array.null_count and not of.is_nullable:
        msg = "a value is missing"
        raise DamagedError(msg)
    return of.decode(array)


def _list_type(inner: Codec) -> pa.DataType:
    return pa.list_(_field("element", inner))


def _as_lists(values: Sequence[Any], flat: pa.Array, inner: Codec) -> pa.Array:
    ends = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in values], out=ends[1:])
    offsets = pa.array(ends, pa.int64()).cast(pa.int32())  # refuses what does not fit
    return pa.ListArray.from_arrays(offsets, flat, type=_list_type(inner))


def _bounds(array: pa.Array) -> list[int]:
    """Return where each list begins and ends in its values."""
    return (array.offsets.to_numpy() - array.offsets[0].as_py()).tolist()  # type: ignore[no-any-return]


OF_ORIGINS: Mapping[Any, Callable[..., Codec]] = {
    Annotated: _annotated,
    Literal: _literal,
    Mapping: _map,
    Union: _optional,
    UnionType: _optional,
    np.ndarray: _array,
    tuple: _tuple,
}
"""What makes a codec of the parameters of a generic type."""
