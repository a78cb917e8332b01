"""Memory snapshots and timelines in the folders of runs: their list and their contents.

Files are recognized by content (`ingest/memory_files.py`); code in pickles never runs. This process
reads them up to a size limit; `stepscope memory` reads larger ones.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Literal

import msgspec
import numpy as np

from stepscope import storage
from stepscope.analyses.memory.curve import decimated_indices
from stepscope.analyses.memory.file_reports import (
    CURVE_SCHEMA,
    category_curve,
    report_of_snapshot,
    report_of_timeline,
)
from stepscope.analyses.memory.memory_report import MemoryReport, MemoryTable
from stepscope.analyses.memory.snapshot_history import History, histories
from stepscope.api import http_errors
from stepscope.api.endpoint import RunQuery
from stepscope.api.messages import Response, Table
from stepscope.api.public_tables import RowOrder, shown_table
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError, UnreadableError
from stepscope.base.formatting import size
from stepscope.catalog.catalog import Catalog
from stepscope.ingest import memory_files
from stepscope.model.frames.memory_snapshot import MemorySnapshot, snapshot_of
from stepscope.model.frames.memory_timeline import CATEGORIES, MemoryTimeline, timeline_of
from stepscope.model.table import Table as PublicTable
from stepscope.storage import FileStamp
from stepscope.storage.discover import TRACE_NAME

ENDINGS = (".pickle", ".pkl", ".json", ".json.gz", ".pickle.gz")
MOST_FILES = 64
"""Limit of checked files per folder."""
MOST_FILE_BYTES = 64 * 2**20
"""Limit of a file's size on disk."""
MOST_READ_BYTES = 256 * 2**20
"""Limit of a file's uncompressed size."""
MOST_ROWS = 1000
MOST_CACHED = 4
PIXELS = 1200
TOO_LARGE = "Read it on the command line: stepscope memory FILE."
FileKind = Literal["snapshot", "timeline"]


class MemoryFile(msgspec.Struct, frozen=True):
    """A memory snapshot or timeline in a run's folder."""

    id: str
    name: str
    what: FileKind
    file_bytes: int
    problem: str = ""
    """Why it cannot be read here; empty for readable files."""


class MemoryFiles(Response, frozen=True, kw_only=True):
    """Memory snapshots and timelines in a run's folder."""

    files: tuple[MemoryFile, ...]


class MemoryLine(msgspec.Struct, frozen=True):
    """One line of a chart."""

    id: str
    label: str
    help: str
    bytes: list[int]


class MemoryFileCurve(msgspec.Struct, frozen=True):
    """A chart of a file's values over time."""

    title: str
    is_stacked: bool
    """Whether the lines are parts of a total."""
    is_in_time: bool
    """False without recorded times: `at` then counts the allocator's actions."""
    at: list[int]
    """Times in ns from the first event, or numbers of entries."""
    lines: tuple[MemoryLine, ...]


class MemoryFileReport(Response, frozen=True, kw_only=True):
    """Contents of a memory snapshot or timeline."""

    id: str
    name: str
    what: FileKind
    summary: tuple[str, ...]
    """The main results, in sentences."""
    curves: tuple[MemoryFileCurve, ...]
    tables: tuple[Table, ...]


class FileQuery(RunQuery, frozen=True, kw_only=True):
    """A memory file of a run."""

    file: str
    """A `MemoryFile.id`."""


Candidate = tuple[str, str, FileStamp]
"""A file's id, path and stamp."""
_reports: OrderedDict[tuple[str, FileStamp], MemoryFileReport] = OrderedDict()
_lock = Lock()
"""Held while a file is read: reading may take hundreds of megabytes."""


def files(catalog: Catalog, query: RunQuery) -> MemoryFiles:
    """Return the memory snapshots and timelines in a run's folder.

    Raises:
        UnknownNameError: the run does not exist.
    """
    described = (_file(*candidate) for candidate in _candidates(catalog, query.run))
    return MemoryFiles(files=tuple(filter(None, described)))


def report(catalog: Catalog, query: FileQuery) -> MemoryFileReport:
    """Return summary, curves and tables of a memory snapshot or timeline.

    Raises:
        UnknownNameError: the run or file does not exist.
        RefusalError: the file cannot be read.
    """
    for candidate in _candidates(catalog, query.run):
        if candidate[0] == query.file:
            try:
                return _cached_report(*candidate)
            except UnreadableError as error:
                raise http_errors.unreadable(error.message, error.remedy) from error
    msg = f"no memory file has the id {query.file!r}: it may have been moved or deleted"
    raise UnknownNameError(msg)


def _candidates(catalog: Catalog, run: str) -> Iterator[Candidate]:
    """Yield the files in a run's folder that may be memory files."""
    folder = catalog.run(run)[0].file.folder
    listed = {name: stamp for _, page in storage.files_in(folder) for name, stamp in page.items()}
    names = [name for name in sorted(listed) if name.endswith(ENDINGS)]
    for name in [name for name in names if not TRACE_NAME.match(name)][:MOST_FILES]:
        path = urls.join(folder, name)
        identity = hashlib.sha256(f"memory:{path}".encode("utf-8", "surrogateescape"))
        try:
            yield identity.hexdigest()[:12], path, listed[name] or storage.stamp(path)
        except (OSError, UnreadableError):  # deleted in the meantime, or not a regular file
            continue


def _file(identity: str, path: str, stamp: FileStamp) -> MemoryFile | None:
    """Return a memory file, recognized by its first bytes or its name; None for other files."""
    problem = ""
    try:
        what = memory_files.kind_of(path)
    except UnreadableError as error:
        if not _is_pickle(path):
            return None
        what, problem = "snapshot", f"{error.message} {error.remedy}"
    if what is None:
        return None
    if stamp.size_bytes > MOST_FILE_BYTES:
        problem = f"The file is larger than {size(MOST_FILE_BYTES)}. {TOO_LARGE}"
    name = urls.name(path)
    return MemoryFile(
        id=identity, name=name, what=what, file_bytes=stamp.size_bytes, problem=problem
    )


def _is_pickle(path: str) -> bool:
    return path.endswith((".pickle", ".pkl", ".pickle.gz"))


def _cached_report(identity: str, path: str, stamp: FileStamp) -> MemoryFileReport:
    key = path, stamp
    with _lock:
        if key not in _reports:
            _reports[key] = _report(identity, path, stamp)
        _reports.move_to_end(key)
        while len(_reports) > MOST_CACHED:
            _reports.popitem(last=False)
        return _reports[key]


def _report(identity: str, path: str, stamp: FileStamp) -> MemoryFileReport:
    """Read a file.

    Raises:
        UnreadableError: the file is too large, damaged, or not a memory file.
    """
    if stamp.size_bytes > MOST_FILE_BYTES:
        message = f"The file is larger than {size(MOST_FILE_BYTES)}."
        raise UnreadableError(path, message, TOO_LARGE)
    document = memory_files.read(path, most_bytes=MOST_READ_BYTES)
    if document is None:
        raise UnreadableError(path, "The file is not a memory snapshot or timeline.", "")
    contents: MemoryReport
    if document.what == "timeline":
        timeline = timeline_of(document)
        contents = report_of_timeline(timeline, most_rows=MOST_ROWS)
        curves = _of_timeline(timeline)
    else:
        snapshot = snapshot_of(document.content, path)
        contents = report_of_snapshot(snapshot, most_rows=MOST_ROWS)
        curves = _of_snapshot(snapshot)
    return MemoryFileReport(
        id=identity,
        name=urls.name(path),
        what=document.what,
        summary=contents.summary,
        curves=curves,
        tables=tuple(_table(table) for table in contents.tables),
    )


def _table(table: MemoryTable) -> Table:
    public = PublicTable(
        title=table.title, meaning="", schema=table.schema, build=lambda _: table.rows
    )
    shown = shown_table(public, table.rows, RowOrder(limit=MOST_ROWS))
    return msgspec.structs.replace(
        shown,
        empty=table.missing or "The file has none.",
        all_row_count=shown.row_count + table.left_out,
    )


def _of_timeline(timeline: MemoryTimeline) -> tuple[MemoryFileCurve, ...]:
    curve = category_curve(timeline)
    if not len(curve):
        return ()
    time_ns = curve["time_ns"].to_numpy()
    shown = {name: curve[f"{name}_bytes"].to_numpy() for name in CATEGORIES}
    shown = {name: values for name, values in shown.items() if values.any()}
    levels = [curve["total_bytes"].to_numpy().astype(np.float64)]
    levels += [values.astype(np.float64) for values in shown.values()]
    indices = decimated_indices(time_ns, levels, int(time_ns[0]), int(time_ns[-1]), PIXELS)
    meanings = {column.name: column.meaning for column in CURVE_SCHEMA}
    lines = tuple(
        MemoryLine(
            id=name,
            label=name.replace("_", " ").capitalize(),
            help=meanings[f"{name}_bytes"],
            bytes=values[indices].tolist(),
        )
        for name, values in shown.items()
    )
    return (
        MemoryFileCurve(
            title="Memory by category over time",
            is_stacked=True,
            is_in_time=True,
            at=time_ns[indices].tolist(),
            lines=lines,
        ),
    )


def _of_snapshot(snapshot: MemorySnapshot) -> tuple[MemoryFileCurve, ...]:
    return tuple(
        _of_history(snapshot, history) for history in histories(snapshot) if len(history.rows)
    )


def _of_history(snapshot: MemorySnapshot, history: History) -> MemoryFileCurve:
    """Return a device's levels over time, or over its entries where their times do not increase."""
    at = snapshot.entries["time_ns"].to_numpy()[history.rows]
    is_in_time = bool(at[0] >= 0 and at[-1] > at[0] and (np.diff(at) >= 0).all())
    at = at - at[0] if is_in_time else np.arange(len(at))
    levels = history.requested_bytes, history.reserved_bytes
    drawn = [level.astype(np.float64) for level in levels]
    indices = decimated_indices(at, drawn, int(at[0]), int(at[-1]), PIXELS)
    lines = (
        ("requested", "Tensors", "Memory requested for tensors, without rounding."),
        ("reserved", "Reserved", "Memory that the allocator reserved on the device."),
    )
    return MemoryFileCurve(
        title=f"Device {history.device} over time",
        is_stacked=False,
        is_in_time=is_in_time,
        at=at[indices].tolist(),
        lines=tuple(
            MemoryLine(id=name, label=label, help=text, bytes=level[indices].tolist())
            for (name, label, text), level in zip(lines, levels, strict=True)
        ),
    )
