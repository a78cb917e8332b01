"""Events as columns: integer codes for text, integer nanoseconds for times, sparse arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.ingest.incidents import Incident

MISSING = -1
"""The code of an absent text."""
INT32 = np.iinfo(np.int32)

Decoded = tuple[NDArray[Any], tuple[str, ...] | None]
"""An argument's values, and the texts where the values are codes."""


class Values(Protocol):
    """An argument's values as a reader keeps them, until somebody asks for them."""

    def decoded(self) -> Decoded:
        """Return the values as `ArgumentColumn` gives them."""

    @property
    def nbytes(self) -> int:
        """How much memory they take."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plain:
    """Values that need no decoding."""

    values: NDArray[Any]
    texts: tuple[str, ...] | None

    def decoded(self) -> Decoded:
        """Return them as they are."""
        return self.values, self.texts

    @property
    def nbytes(self) -> int:
        """How much memory the values take, without their texts."""
        return self.values.nbytes


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgumentColumn:
    """The values of one argument: `values[i]` belongs to event `rows[i]` (int32); rows ascend.

    `values` is int32 or int64, the narrowest, where all are whole numbers; float64 where all are
    numbers that it can hold; else int32 codes into `texts` (containers and booleans as JSON,
    numbers as they were written). They are decoded when first asked for.
    """

    rows: NDArray[np.int32]
    kept: Values

    @cached_property
    def _decoded(self) -> Decoded:
        return self.kept.decoded()

    @property
    def values(self) -> NDArray[Any]:
        """Numbers, or codes into `texts`."""
        return self._decoded[0]

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The texts that `values` are codes of, in order of appearance; None for numbers."""
        return self._decoded[1]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        decoded = self.values.nbytes if "_decoded" in self.__dict__ else 0
        return self.rows.nbytes + self.kept.nbytes + decoded


@dataclass(frozen=True, kw_only=True, eq=False)
class EventColumns:
    """One row an event, in the file's order. Text columns hold codes into `strings`, or -1.

    `start_ns` and `duration_ns` are int64, `NO_TIME` where the event has none; `start_ns` counts
    from `origin_ns`, the first event's stamp. `base_time_ns` added to `origin_ns` is Unix time
    where the file says so, else `base_time_ns` is 0. `offset_bytes` is where in the inflated
    document each event begins, and `inflated_bytes` how much of that was read.
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

    def __len__(self) -> int:
        """Return how many events there are."""
        return len(self.phase)

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        own: int = sum(getattr(self, name).nbytes for name in ARRAYS)
        return own + sum(column.nbytes for column in self.arguments.values())


CODES = ("phase", "category", "name", "pid", "tid", "identifier")
FIELDS = ("ph", "cat", "name", "pid", "tid", "id")
"""The events' own keys of those columns."""
ARRAYS = (*CODES, "start_ns", "duration_ns", "offset_bytes")


@dataclass(frozen=True, kw_only=True, eq=False)
class Taken:
    """What a reader took from a file: `arrays` in the order of `ARRAYS`, stamps as written."""

    arrays: Sequence[NDArray[Any]]
    strings: tuple[str, ...]
    arguments: Mapping[str, ArgumentColumn]


@dataclass(frozen=True, kw_only=True)
class About:
    """What else is known of the file."""

    metadata: Mapping[str, Any]
    incidents: tuple[Incident, ...]
    inflated_bytes: int


def event_columns(taken: Taken, about: About) -> EventColumns:
    """Return what was taken as columns whose time begins at the first event."""
    arrays = dict(zip(ARRAYS, taken.arrays, strict=True))
    origin = _origin_ns(arrays, taken.strings)
    starts = arrays["start_ns"]
    np.subtract(starts, origin, out=starts, where=starts != NO_TIME)
    return EventColumns(
        **arrays,
        origin_ns=origin,
        base_time_ns=_base_time_ns(about.metadata),
        inflated_bytes=about.inflated_bytes,
        strings=taken.strings,
        arguments=taken.arguments,
        metadata=about.metadata,
        incidents=about.incidents,
    )


def narrowest(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as int32 where that holds all of them."""
    if values.dtype == np.int32:
        return values
    fits = not len(values) or (INT32.min <= values.min() and values.max() <= INT32.max)
    return values.astype(np.int32) if fits else values


def readable(text: str) -> str:
    """Return the text with halves of surrogate pairs replaced: UTF-8 cannot hold them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _base_time_ns(metadata: Mapping[str, Any]) -> int:
    base = metadata.get("baseTimeNanoseconds", 0)
    return base if isinstance(base, int) else 0


def _origin_ns(arrays: Mapping[str, NDArray[Any]], strings: tuple[str, ...]) -> int:
    """Return the first complete event's stamp: not the profiler's own range, not a 0/0 kernel."""
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
