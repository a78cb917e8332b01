"""Cache of large traces' columns on disk: one Arrow IPC file per trace, compressed by zstd.

An entry is valid for one state of a file (path, size, modification time) and one version of the
reader. Its digest and content are checked before use, and it contains no pickle. A damaged entry is
removed, and the trace is read again; a full or inaccessible folder is logged.

Columns differ in length, so each is stored as a list in a single row.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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
from stepscope.storage.cache_folder import require, warn_once

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

COLUMNS_VERSION = 2
"""Increment whenever the reader's columns change."""
MAGIC = b"stepscope columns\n"
DIGEST_BYTES = 32
SUFFIX = ".columns"
ABOUT = b"stepscope"
NUMBERS = ("origin_ns", "base_time_ns", "inflated_bytes")
ARGUMENT_TYPES = (np.int32, np.int64, np.float64)


class StaleError(Exception):
    """An entry is for an earlier state of the file."""


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """The cache entry of one file."""

    folder: str
    path: str
    stamp: FileStamp

    @property
    def name(self) -> str:
        """Name of its file, the same for all states of a trace."""
        text = f"{storage.real_path(self.path)}\0{COLUMNS_VERSION}\0{__version__}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32] + SUFFIX

    @property
    def key(self) -> dict[str, Any]:
        """State of the trace and version of the reader for which the entry is valid."""
        return {**asdict(self.stamp), "columns": COLUMNS_VERSION, "stepscope": __version__}


def columns_of(
    path: str,
    stamp: FileStamp | None,
    settings: CacheSettings,
    read: Callable[[], EventColumns],
) -> EventColumns:
    """Return a file's columns from the cache; if missing, read and store them."""
    if settings.folder is None or stamp is None or not stamp.modified_ns:
        return read()
    entry = CacheEntry(
        folder=settings.folder or cache_folder.user_cache_folder(), path=path, stamp=stamp
    )
    if (cached := _load(entry)) is not None:
        return cached
    columns = read()
    if columns.inflated_bytes >= settings.worth_bytes:
        store(entry, columns, settings.bound_bytes)
    return columns


def store(entry: CacheEntry, columns: EventColumns, bound_bytes: int) -> None:
    """Store a file's columns, unless the file has changed; log a failure."""
    try:
        if storage.stamp(entry.path) != entry.stamp:
            return
        cache_folder.write(entry.folder, entry.name, *encoded(columns, entry.key))
        cache_folder.bound(entry.folder, f"*{SUFFIX}", bound_bytes)
    except ImportError:
        pass  # `_load` reports it
    except OSError as error:
        warn_once(log, f"nothing can be cached in {entry.folder} ({error.strerror or error})")
    except Exception as error:  # the trace was read nevertheless
        log.warning("%s is not cached: %s", urls.redacted(entry.path), in_one_line(error))


def encoded(columns: EventColumns, key: Mapping[str, Any]) -> tuple[bytes, bytes, memoryview]:
    """Return the parts of a file with the columns and their key."""
    import pyarrow as pa

    lists = {name: pa.array(getattr(columns, name)) for name in ARRAYS}
    lists["strings"] = pa.array(columns.strings, pa.large_string())
    for index, column in enumerate(columns.arguments.values()):
        lists[f"rows {index}"] = pa.array(column.rows)
        lists[f"values {index}"] = pa.array(column.values)
        if column.texts is not None:
            lists[f"texts {index}"] = pa.array(column.texts, pa.large_string())
    about = {
        "key": key,
        **{name: getattr(columns, name) for name in NUMBERS},
        "metadata": columns.metadata,
        "stamp": asdict(columns.stamp) if columns.stamp else None,
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
        DamagedError: The file is damaged.
        StaleError: The entry has another key.
    """
    import pyarrow as pa

    view = memoryview(content)
    head, body = view[: len(MAGIC) + DIGEST_BYTES], view[len(MAGIC) + DIGEST_BYTES :]
    require(bytes(head) == MAGIC + digest(body), "its digest differs")
    reader = pa.ipc.open_file(pa.py_buffer(body))
    about = json.loads(reader.schema.metadata[ABOUT])
    if about["key"] != key:
        raise StaleError
    require(reader.num_record_batches == 1, "it contains more than one table")
    batch = reader.get_batch(0)
    batch.validate(full=True)
    require(batch.num_rows == 1, "it contains more than one row")
    return _columns(_Lists(batch), about)


def as_one_value(values: "pa.Array") -> "pa.Array":
    """Return an array of one value, the list of the given values."""
    import pyarrow as pa

    ends = pa.array([0, len(values)], pa.int64())
    return pa.LargeListArray.from_arrays(ends, values)


def digest(body: memoryview) -> bytes:
    """Return the digest of an entry's content."""
    return hashlib.sha256(body).digest()  # the fastest digest on processors with SHA instructions


class _Lists:
    """The lists of an entry by name, as arrays and texts."""

    def __init__(self, batch: "pa.RecordBatch") -> None:
        self._batch = batch

    def array(self, name: str, *types: type[np.generic]) -> NDArray[Any]:
        values = self._values(name)
        array: NDArray[Any] = values.to_numpy(zero_copy_only=True)
        require(array.dtype in types, f"{name!r} has another type")
        return array

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._values(name).to_pylist())

    def _values(self, name: str) -> "pa.Array":
        values = self._batch.column(name).flatten()
        require(values.null_count == 0, f"{name!r} has a missing value")
        return values

    def __contains__(self, name: str) -> bool:
        return name in self._batch.schema.names


def _columns(lists: _Lists, about: Mapping[str, Any]) -> EventColumns:
    arrays = {name: lists.array(name, np.int32 if name in CODES else np.int64) for name in ARRAYS}
    strings = lists.texts("strings")
    count = len(arrays["phase"])
    require(count > 0, "it contains no event")
    for name, array in arrays.items():
        require(len(array) == count, f"{name!r} has another length")
        require(name not in CODES or _is_inside(array, MISSING, len(strings)), f"codes of {name!r}")
    fields: dict[str, Any] = {**arrays, **{name: int(about[name]) for name in NUMBERS}}
    return EventColumns(
        **fields,
        strings=strings,
        arguments={
            str(name): _argument(lists, index, count)
            for index, name in enumerate(about["arguments"])
        },
        metadata=dict(about["metadata"]),
        stamp=FileStamp(**about["stamp"]) if about["stamp"] else None,
        incidents=tuple(_incident(**fields) for fields in about["incidents"]),
    )


def _argument(lists: _Lists, index: int, count: int) -> ArgumentColumn:
    rows = lists.array(f"rows {index}", np.int32)
    values = lists.array(f"values {index}", *ARGUMENT_TYPES)
    require(len(rows) == len(values), f"argument {index} has no row for each value")
    require(_is_inside(rows, 0, count), f"rows of argument {index}")
    require(bool(np.all(rows[1:] > rows[:-1])), f"order of the rows of argument {index}")
    texts = lists.texts(name) if (name := f"texts {index}") in lists else None
    is_code = values.dtype == np.int32 and texts is not None and _is_inside(values, 0, len(texts))
    require(texts is None or is_code, f"codes of argument {index}")
    return ArgumentColumn(rows=rows, stored=Plain(values=values, texts=texts))


def _incident(examples: list[dict[str, Any]], **fields: Any) -> Incident:  # noqa: ANN401
    return Incident(**fields, examples=tuple(Example(**example) for example in examples))


def _load(entry: CacheEntry) -> EventColumns | None:
    try:
        return decoded(cache_folder.read(entry.folder, entry.name), entry.key)
    except (FileNotFoundError, StaleError):
        return None
    except OSError as error:
        warn_once(log, f"the cache in {entry.folder} cannot be read ({error.strerror or error})")
    except ImportError:
        warn_once(log, "caching traces on disk needs pyarrow: pip install 'stepscope[cache]'")
    except Exception as error:  # whatever the folder contains, the trace can be read
        cache_folder.remove(entry.folder, entry.name)
        path = urls.redacted(entry.path)
        log.warning("the cache entry of %s was damaged and is removed: %s", path, error)
    return None


def _is_inside(values: NDArray[Any], least: int, end: int) -> bool:
    return not len(values) or (int(values.min()) >= least and int(values.max()) < end)
