"""Events as columns: integer codes for text, integer nanoseconds for times, sparse arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.ingest.incidents import Incident
from stepscope.storage import FileStamp

MISSING = -1
"""The code of an absent text."""
INT32 = np.iinfo(np.int32)

Decoded = tuple[NDArray[Any], tuple[str, ...] | None]
"""An argument's values, and the texts if the values are codes."""


class Values(Protocol):
    """An argument's values in a reader's format, decoded on access."""

    def decoded(self) -> Decoded:
        """Return the values in the format of `ArgumentColumn`."""

    @property
    def nbytes(self) -> int:
        """Memory of the values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plain:
    """Values that need no decoding."""

    values: NDArray[Any]
    texts: tuple[str, ...] | None

    def decoded(self) -> Decoded:
        """Return the values unchanged."""
        return self.values, self.texts

    @property
    def nbytes(self) -> int:
        """Memory of the values, without their texts."""
        return self.values.nbytes


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgumentColumn:
    """The values of one argument: `values[i]` belongs to event `rows[i]` (int32); rows ascend.

    The type of `values` is int32 or int64, the narrowest, if all are whole numbers; float64 if all
    are numbers that it can hold; otherwise int32 codes into `texts` (containers and booleans as
    JSON, numbers as written). They are decoded on first access.
    """

    rows: NDArray[np.int32]
    stored: Values

    @cached_property
    def _decoded(self) -> Decoded:
        return self.stored.decoded()

    @property
    def values(self) -> NDArray[Any]:
        """Numbers, or codes into `texts`."""
        return self._decoded[0]

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The texts that `values` index, in order of appearance; None for numbers."""
        return self._decoded[1]

    @property
    def nbytes(self) -> int:
        """Memory of the column."""
        decoded = self.values.nbytes if "_decoded" in self.__dict__ else 0
        return self.rows.nbytes + self.stored.nbytes + decoded


@dataclass(frozen=True, kw_only=True, eq=False)
class EventColumns:
    """One row per event, in the file's order. Text columns hold codes into `strings`, or -1.

    Both `start_ns` and `duration_ns` are int64, `NO_TIME` if the event has none; `start_ns` counts
    from `origin_ns`, the first event's stamp. `base_time_ns` added to `origin_ns` is Unix time if
    the file has a base time, else `base_time_ns` is 0. `offset_bytes` is the offset of each event
    in the inflated document, and `inflated_bytes` the size of the part that was read.
    """

    phase: NDArray[np.int32]
    category: NDArray[np.int32]
    name: NDArray[np.int32]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    identifier: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    offset_bytes: NDArray[np.int64]
    origin_ns: int
    base_time_ns: int
    inflated_bytes: int
    strings: tuple[str, ...]
    arguments: Mapping[str, ArgumentColumn]
    metadata: Mapping[str, Any]
    incidents: tuple[Incident, ...]
    stamp: FileStamp | None = None
    """Of the file that was read."""

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.phase)

    @property
    def nbytes(self) -> int:
        """Memory of the columns."""
        size: int = sum(getattr(self, name).nbytes for name in ARRAYS)
        return size + sum(column.nbytes for column in self.arguments.values())


CODES = ("phase", "category", "name", "pid", "tid", "identifier")
FIELDS = ("ph", "cat", "name", "pid", "tid", "id")
"""Keys of the events that are stored in these columns."""
ARRAYS = (*CODES, "start_ns", "duration_ns", "offset_bytes")


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnParts:
    """A reader's result: `arrays` in the order of `ARRAYS`, with times as written."""

    arrays: Sequence[NDArray[Any]]
    strings: tuple[str, ...]
    arguments: Mapping[str, ArgumentColumn]


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """Other properties of the file."""

    metadata: Mapping[str, Any]
    incidents: tuple[Incident, ...]
    inflated_bytes: int
    stamp: FileStamp | None = None


def event_columns(parts: ColumnParts, facts: FileFacts) -> EventColumns:
    """Return columns whose time begins at the first event."""
    arrays = dict(zip(ARRAYS, parts.arrays, strict=True))
    origin = _origin_ns(arrays, parts.strings)
    starts = arrays["start_ns"]
    np.subtract(starts, origin, out=starts, where=starts != NO_TIME)
    return EventColumns(
        **arrays,
        origin_ns=origin,
        base_time_ns=_base_time_ns(facts.metadata),
        inflated_bytes=facts.inflated_bytes,
        strings=parts.strings,
        arguments=parts.arguments,
        metadata=facts.metadata,
        incidents=facts.incidents,
        stamp=facts.stamp,
    )


def narrowest(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as int32 if all fit."""
    if values.dtype == np.int32:
        return values
    fits = not len(values) or (INT32.min <= values.min() and values.max() <= INT32.max)
    return values.astype(np.int32) if fits else values


def readable(text: str) -> str:
    """Return the text with lone surrogates replaced, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _base_time_ns(metadata: Mapping[str, Any]) -> int:
    base = metadata.get("baseTimeNanoseconds", 0)
    return base if isinstance(base, int) else 0


def _origin_ns(arrays: Mapping[str, NDArray[Any]], strings: tuple[str, ...]) -> int:
    """Return the first complete event's stamp, except the profiler's range and 0/0 kernels."""
    starts, durations = arrays["start_ns"], arrays["duration_ns"]
    timed = starts != NO_TIME
    complete = timed & (arrays["phase"] == _code(strings, "X"))
    real = complete & (arrays["category"] != _code(strings, "Trace"))
    real &= ~((starts == 0) & (durations <= 0))
    for candidates in (real, complete, timed):
        if candidates.any():
            return int(starts.min(where=candidates, initial=np.iinfo(np.int64).max))
    return 0


def _code(strings: tuple[str, ...], text: str) -> int:
    return strings.index(text) if text in strings else MISSING - 1
