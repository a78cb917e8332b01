"""Conversion of frozen dataclasses to Arrow columns and back, by their annotations.

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

Columns are converted as wholes: a thousand values cost little more than one.
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

from stepscope.storage.cache_folder import require

COLUMNS = "columns"
"""Annotation of a two-dimensional array."""
PLAIN: Mapping[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Codec:
    """Column type of a Python type, with its conversions."""

    type: pa.DataType
    encode: Callable[[Sequence[Any]], pa.Array]
    decode: Callable[[pa.Array], list[Any]]
    """Conversion of an array without nulls."""
    is_nullable: bool = False


@cache
def codec(of: Any) -> Codec:  # noqa: ANN401
    """Return the codec of an annotated type.

    Raises:
        TypeError: The type is not supported.
    """
    result = _plain(of) if of in PLAIN else _of_annotation(of) or _of_class(of)
    if result is None:
        msg = f"{of} cannot be stored"
        raise TypeError(msg)
    return result


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
    """Return the fields and types of a dataclass or named tuple; empty for other types."""
    if dataclasses.is_dataclass(of):
        names = [field.name for field in dataclasses.fields(of)]
    else:
        names = list(getattr(of, "_fields", ()))
    hints = get_type_hints(of, include_extras=True) if names else {}
    return {name: hints[name] for name in names}


def fields_of(of: Any) -> pa.Schema:  # noqa: ANN401
    """Return the columns of a dataclass."""
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
    return _decode_distinct(array, intern)


def _decode_distinct(array: pa.Array, read: Callable[[str], Any]) -> list[Any]:
    """Return the values of texts; equal texts are decoded once and share one object."""
    distinct = array.dictionary_encode()
    values = [read(text) for text in distinct.dictionary.to_pylist()]
    return [values[code] for code in distinct.indices.to_numpy().tolist()]


def _literal(*texts: str) -> Codec:
    def read(text: str) -> str:
        require(text in texts, f"{text!r} is not one of {texts}")
        return intern(text)

    return dataclasses.replace(_plain(str), decode=lambda array: _decode_distinct(array, read))


def _json(of: type[msgspec.Struct]) -> Codec:
    def encode(values: Sequence[Any]) -> pa.Array:
        texts = [msgspec.json.encode(value) for value in values]
        return pa.array(texts, pa.binary()).cast(pa.string())

    decoder = msgspec.json.Decoder(of)
    return Codec(
        type=pa.string(),
        encode=encode,
        decode=lambda array: _decode_distinct(array, decoder.decode),
    )


def _optional(*kinds: Any) -> Codec:  # noqa: ANN401
    [kind] = [kind for kind in kinds if kind is not NoneType]
    inner = codec(kind)

    def encode(values: Sequence[Any]) -> pa.Array:
        there = np.array([value is not None for value in values], dtype=bool)
        present = inner.encode([value for value in values if value is not None])
        index = np.cumsum(there) - 1
        return present.take(pa.array(index, pa.int64(), mask=~there))

    def decode(array: pa.Array) -> list[Any]:
        present = iter(inner.decode(array.drop_null()))
        there = array.is_valid().to_numpy(zero_copy_only=False)
        return [next(present) if is_there else None for is_there in there.tolist()]

    return Codec(type=inner.type, encode=encode, decode=decode, is_nullable=True)


def _struct(of: Any, fields: Mapping[str, Any]) -> Codec:  # noqa: ANN401
    def values_of(value: Any) -> list[Any]:  # noqa: ANN401
        return [getattr(value, name) for name in fields]

    def construct(*values: Any) -> Any:  # noqa: ANN401
        return of(**dict(zip(fields, values, strict=True)))

    return _record(fields, values_of, construct)


def _tuple(*kinds: Any) -> Codec:  # noqa: ANN401
    if kinds[1:] == (Ellipsis,):
        return _list(kinds[0])
    fields = {f"item_{index}": kind for index, kind in enumerate(kinds)}
    return _record(fields, list, lambda *values: values)


def _record(
    fields: Mapping[str, Any], values_of: Callable[[Any], list[Any]], construct: Callable[..., Any]
) -> Codec:
    """Return the codec of a struct column with these fields."""
    codecs = [codec(kind) for kind in fields.values()]
    schema = [_field(name, inner) for name, inner in zip(fields, codecs, strict=True)]

    def encode(values: Sequence[Any]) -> pa.Array:
        columns = list(zip(*map(values_of, values), strict=True)) or [()] * len(codecs)
        arrays = [inner.encode(column) for inner, column in zip(codecs, columns, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=schema)

    def decode(array: pa.Array) -> list[Any]:
        parts = zip(codecs, array.flatten(), strict=True)
        columns = [decoded(inner, part) for inner, part in parts]
        return [construct(*values) for values in zip(*columns, strict=True)]

    return Codec(type=pa.struct(schema), encode=encode, decode=decode)


def _list(kind: Any) -> Codec:  # noqa: ANN401
    inner = codec(kind)

    def encode(values: Sequence[Any]) -> pa.Array:
        return _as_lists(values, inner.encode(list(chain.from_iterable(values))), inner)

    def decode(array: pa.Array) -> list[Any]:
        values = decoded(inner, array.flatten())
        return [tuple(values[low:high]) for low, high in pairwise(_bounds(array))]

    return Codec(type=_list_type(inner), encode=encode, decode=decode)


def _map(key: Any, kind: Any) -> Codec:  # noqa: ANN401
    pair_lists = codec(tuple[tuple[key, kind], ...])
    of = pa.map_(codec(key).type, _field("value", codec(kind)))

    def encode(values: Sequence[Any]) -> pa.Array:
        lists = pair_lists.encode([tuple(value.items()) for value in values])
        keys, items = lists.values.flatten()
        return pa.MapArray.from_arrays(lists.offsets, keys, items, type=of)

    def decode(array: pa.Array) -> list[Any]:
        bounds = _bounds(array)
        used = slice(array.offsets[0].as_py(), array.offsets[-1].as_py())
        keys = decoded(codec(key), array.keys[used])
        pairs = list(zip(keys, decoded(codec(kind), array.items[used]), strict=True))
        return [dict(pairs[low:high]) for low, high in pairwise(bounds)]

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
        require(not values.null_count, "a list of numbers has a missing value")
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
                {name: np.array(texts, dtype=object) for name, texts in frame.items()}, dtype=object
            )
            for frame in columns.decode(array)
        ]

    return Codec(type=columns.type, encode=encode, decode=decode)


def decoded(of: Codec, array: pa.Array) -> list[Any]:
    """Return the values in a column.

    Raises:
        DamagedError: A value is missing.
    """
    require(of.is_nullable or not array.null_count, "a value is missing")
    return of.decode(array)


def _list_type(inner: Codec) -> pa.DataType:
    return pa.list_(_field("element", inner))


def _as_lists(values: Sequence[Any], flat: pa.Array, inner: Codec) -> pa.Array:
    ends = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in values], out=ends[1:])
    offsets = pa.array(ends, pa.int64()).cast(pa.int32())  # raises if an offset does not fit
    return pa.ListArray.from_arrays(offsets, flat, type=_list_type(inner))


def _bounds(array: pa.Array) -> list[int]:
    """Return the offsets of each list in the values."""
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
"""Codec factories of generic types, called with the type's parameters."""
