"""What was read of large traces, kept on disk: one Arrow IPC file a trace, compressed by zstd.

An entry belongs to one state of one file (path, size, time of change) and to one way of reading.
It is never trusted: it carries a digest, and what is in it is checked before it is used. One that
is damaged is removed, and the trace is read anew; a folder that is full or closed costs a line in
the log. Nothing of it is a pickle.

Every column is one value of one row, a list, since they differ in length.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepscope import storage
from stepscope._version import __version__
from stepscope.base import urls
from stepscope.base.config import CacheSettings
from stepscope.base.errors import in_one_line
from stepscope.ingest import ArgumentColumn, EventColumns, Incident
from stepscope.ingest.columns import ARRAYS, CODES, MISSING, Plain
from stepscope.ingest.incidents import Example
from stepscope.storage import FileStamp, cache_folder

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

COLUMNS_VERSION = 1
"""To be raised whenever a file's columns come out otherwise than before."""
MAGIC = b"stepscope columns\n"
DIGEST_BYTES = 32
SUFFIX = ".columns"
ABOUT = b"stepscope"
NUMBERS = ("origin_ns", "base_time_ns", "inflated_bytes")
ARGUMENT_TYPES = (np.int32, np.int64, np.float64)


class DamagedError(Exception):
    """An entry does not hold what it should."""


class StaleError(Exception):
    """An entry is of an earlier state of the file."""


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """One file's place among what is kept."""

    folder: str
    path: str
    stamp: FileStamp

    @property
    def name(self) -> str:
        """The name of its file there: one for each trace and version, whatever its state."""
        text = f"{storage.real_path(self.path)}\0{COLUMNS_VERSION}\0{__version__}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32] + SUFFIX

    @property
    def key(self) -> dict[str, Any]:
        """What must be the same for the entry to be used."""
        return {**asdict(self.stamp), "columns": COLUMNS_VERSION, "stepscope": __version__}


def columns_of(
    path: str,
    stamp: FileStamp | None,
    settings: CacheSettings,
    read: Callable[[], EventColumns],
) -> EventColumns:
    """Return a file's columns as they were kept, else as `read` gives them, and keep those."""
    if settings.folder is None or stamp is None or not stamp.modified_ns:
        return read()
    entry = CacheEntry(
        folder=settings.folder or cache_folder.user_cache_folder(), path=path, stamp=stamp
    )
    if (kept := _kept(entry)) is not None:
        return kept
    columns = read()
    if columns.inflated_bytes >= settings.worth_bytes:
        store(entry, columns, settings.bound_bytes)
    return columns


def store(entry: CacheEntry, columns: EventColumns, bound_bytes: int) -> None:
    """Keep a file's columns, unless it has changed since it was looked at; say why that failed."""
    try:
        if storage.stamp(entry.path) != entry.stamp:
            return
        cache_folder.write(entry.folder, entry.name, *encoded(columns, entry.key))
        cache_folder.bound(entry.folder, f"*{SUFFIX}", bound_bytes)
    except ImportError:
        pass  # that was said when it was looked for
    except OSError as error:
        say_once(f"nothing can be kept in {entry.folder} ({error.strerror or error})")
    except Exception as error:  # the trace was read; not to keep it costs time alone
        shown = urls.redacted(entry.path)
        log.warning("%s is not kept: %s", shown, in_one_line(error))


def encoded(columns: EventColumns, key: Mapping[str, Any]) -> tuple[bytes, bytes, memoryview]:
    """Return the parts of a file that holds the columns and says what they are of."""
    import pyarrow as pa

    lists = {name: pa.array(getattr(columns, name)) for name in ARRAYS}
    lists["strings"] = pa.array(columns.strings, pa.large_string())
    for place, column in enumerate(columns.arguments.values()):
        lists[f"rows {place}"] = pa.array(column.rows)
        lists[f"values {place}"] = pa.array(column.values)
        if column.texts is not None:
            lists[f"texts {place}"] = pa.array(column.texts, pa.large_string())
    about = {
        "key": key,
        **{name: getattr(columns, name) for name in NUMBERS},
        "metadata": columns.metadata,
        "incidents": [asdict(incident) for incident in columns.incidents],
        "arguments": list(columns.arguments),
    }
    batch = pa.record_batch({name: as_one_value(values) for name, values in lists.items()})
    schema = batch.schema.with_metadata({ABOUT: json.dumps(about).encode()})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    body = memoryview(sink.getvalue())
    return MAGIC, digest(body), body


def decoded(content: bytes, key: Mapping[str, Any]) -> EventColumns:
    """Return the columns in a file.

    Raises:
        DamagedError: they are not as they should be.
        StaleError: they are of something else.
    """
    import pyarrow as pa

    view = memoryview(content)
    head, body = view[: len(MAGIC) + DIGEST_BYTES], view[len(MAGIC) + DIGEST_BYTES :]
    _require(bytes(head) == MAGIC + digest(body), "its digest is of something else")
    reader = pa.ipc.open_file(pa.py_buffer(body))
    about = json.loads(reader.schema.metadata[ABOUT])
    if about["key"] != key:
        raise StaleError
    _require(reader.num_record_batches == 1, "it holds more than one table")
    batch = reader.get_batch(0)
    batch.validate(full=True)
    _require(batch.num_rows == 1, "it holds more than one row")
    return _columns(_Lists(batch), about)


def as_one_value(values: "pa.Array") -> "pa.Array":
    """Return an array as a list that is one value of another array."""
    import pyarrow as pa

    ends = pa.array([0, len(values)], pa.int64())
    return pa.LargeListArray.from_arrays(ends, values)


def digest(body: memoryview) -> bytes:
    """Return what tells whether the content of an entry is as it was written."""
    return hashlib.sha256(body).digest()  # faster than others where the processor knows it


class _Lists:
    """The lists of an entry by name, as arrays and texts."""

    def __init__(self, batch: "pa.RecordBatch") -> None:
        self._batch = batch

    def array(self, name: str, *types: type[np.generic]) -> NDArray[Any]:
        values = self._values(name)
        array: NDArray[Any] = values.to_numpy(zero_copy_only=True)
        _require(array.dtype in types, f"{name!r} is of another type")
        return array

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._values(name).to_pylist())

    def _values(self, name: str) -> "pa.Array":
        values = self._batch.column(name).flatten()
        _require(values.null_count == 0, f"{name!r} lacks a value")
        return values

    def __contains__(self, name: str) -> bool:
        return name in self._batch.schema.names


def _columns(lists: _Lists, about: Mapping[str, Any]) -> EventColumns:
    arrays = {name: lists.array(name, np.int32 if name in CODES else np.int64) for name in ARRAYS}
    strings = lists.texts("strings")
    count = len(arrays["phase"])
    _require(count > 0, "it holds no event")
    for name, array in arrays.items():
        _require(len(array) == count, f"{name!r} is of another length")
        _require(
            name not in CODES or _is_within(array, MISSING, len(strings)), f"codes of {name!r}"
        )
    fields: dict[str, Any] = {**arrays, **{name: int(about[name]) for name in NUMBERS}}
    return EventColumns(
        **fields,
        strings=strings,
        arguments={
            str(name): _argument(lists, place, count)
            for place, name in enumerate(about["arguments"])
        },
        metadata=dict(about["metadata"]),
        incidents=tuple(_incident(**each) for each in about["incidents"]),
    )


def _argument(lists: _Lists, place: int, count: int) -> ArgumentColumn:
    rows = lists.array(f"rows {place}", np.int32)
    values = lists.array(f"values {place}", *ARGUMENT_TYPES)
    _require(len(rows) == len(values), f"argument {place} has no row for each value")
    _require(_is_within(rows, 0, count), f"rows of argument {place}")
    _require(bool(np.all(rows[1:] > rows[:-1])), f"order of the rows of argument {place}")
    texts = lists.texts(name) if (name := f"texts {place}") in lists else None
    is_code = values.dtype == np.int32 and texts is not None and _is_within(values, 0, len(texts))
    _require(texts is None or is_code, f"codes of argument {place}")
    return ArgumentColumn(rows=rows, stored=Plain(values=values, texts=texts))


def _incident(examples: list[dict[str, Any]], **fields: Any) -> Incident:  # noqa: ANN401
    return Incident(**fields, examples=tuple(Example(**each) for each in examples))


def _kept(entry: CacheEntry) -> EventColumns | None:
    try:
        return decoded(cache_folder.read(entry.folder, entry.name), entry.key)
    except (FileNotFoundError, StaleError):
        return None
    except OSError as error:
        say_once(f"what was kept in {entry.folder} cannot be read ({error.strerror or error})")
    except ImportError:
        say_once("to keep traces on disk needs pyarrow: pip install 'stepscope[cache]'")
    except Exception as error:  # whatever is in there, the trace itself can be read
        cache_folder.remove(entry.folder, entry.name)
        shown = urls.redacted(entry.path)
        log.warning("what was kept of %s was damaged, and is removed: %s", shown, error)
    return None


@cache
def say_once(message: str) -> None:
    """Say it once, however many files it is about."""
    log.warning("%s", message)


def _is_within(values: NDArray[Any], least: int, end: int) -> bool:
    return not len(values) or (int(values.min()) >= least and int(values.max()) < end)


def _require(condition: bool, otherwise: str) -> None:  # noqa: FBT001 (reads as an assertion)
    if not condition:
        raise DamagedError(otherwise)
