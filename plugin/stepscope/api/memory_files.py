"""Memory snapshots and timelines beside a run's recordings: which there are, and what they tell.

Both are told by their content (`ingest/memory_files.py`); nothing in a pickle is ever run. They are
read in this process, so that only files up to a bound are: larger ones are for `stepscope memory`.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

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
from stepscope.api.messages import Table
from stepscope.api.public_tables import RowOrder, shown_table
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError, UnreadableError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.ingest import memory_files
from stepscope.model.frames.memory_snapshot import MemorySnapshot, snapshot_of
from stepscope.model.frames.memory_timeline import CATEGORIES, MemoryTimeline, timeline_of
from stepscope.model.table import Table as PublicTable
from stepscope.storage import FileStamp
from stepscope.storage.discover import TRACE_NAME

ENDINGS = (".pickle", ".pkl", ".json", ".json.gz", ".pickle.gz")
MOST_FILES = 64
"""Of a folder, so many are looked at."""
MOST_FILE_BYTES = 64 * 2**20
"""As it lies on disk."""
MOST_READ_BYTES = 256 * 2**20
"""What a file may inflate to."""
MOST_ROWS = 1000
MOST_KEPT = 4
PIXELS = 1200
TOO_LARGE = "Read it on the command line: stepscope memory FILE."
What = Literal["snapshot", "timeline"]


class MemoryFile(msgspec.Struct, frozen=True):
    """A memory snapshot or timeline in a run's folder."""

    id: str
    name: str
    what: What
    file_bytes: int
    problem: str = ""
    """Why it cannot be read here; empty where it can."""


class MemoryFiles(msgspec.Struct, frozen=True):
    """All of them."""

    schema: int
    files: tuple[MemoryFile, ...]


class MemoryLine(msgspec.Struct, frozen=True):
    """One line of a chart."""

    id: str
    label: str
    help: str
    bytes: list[int]


class MemoryFileCurve(msgspec.Struct, frozen=True):
    """A chart of what a file tells over time."""

    title: str
    is_stacked: bool
    """Whether the lines are parts of one whole."""
    is_in_time: bool
    """False where no times were recorded: then `at` counts what the allocator did."""
    at: list[int]
    """In ns from the first event, or the number of the entry."""
    lines: tuple[MemoryLine, ...]


class MemoryFileReport(msgspec.Struct, frozen=True):
    """What a memory snapshot or timeline tells."""

    schema: int
    id: str
    name: str
    what: What
    summary: tuple[str, ...]
    """Sentences."""
    curves: tuple[MemoryFileCurve, ...]
    tables: tuple[Table, ...]


class FileQuery(RunQuery, frozen=True, kw_only=True):
    """Which file of a run."""

    file: str
    """A `MemoryFile.id`."""


Candidate = tuple[str, str, FileStamp]
"""A file's id, path and stamp."""
_kept: OrderedDict[tuple[str, FileStamp], MemoryFileReport] = OrderedDict()
_lock = Lock()
"""One file is read at a time: each may take hundreds of megabytes while it is."""


def files(catalog: Catalog, query: RunQuery) -> MemoryFiles:
    """Return a run's memory snapshots and timelines.

    Raises:
        UnknownNameError: there is no such run.
    """
    found = (_file(*each) for each in _candidates(catalog, query.run))
    return MemoryFiles(schema=SCHEMA_VERSION, files=tuple(filter(None, found)))


def report(catalog: Catalog, query: FileQuery) -> MemoryFileReport:
    """Return what one of them tells.

    Raises:
        UnknownNameError: there is no such run or file.
        RefusalError: it cannot be read.
    """
    for each in _candidates(catalog, query.run):
        if each[0] == query.file:
            try:
                return _kept_report(*each)
            except UnreadableError as error:
                raise http_errors.unreadable(error.message, error.remedy) from error
    msg = f"no memory file has the id {query.file!r}: it may have been moved or deleted"
    raise UnknownNameError(msg)


def _candidates(catalog: Catalog, run: str) -> Iterator[Candidate]:
    """Yield the files beside a run's recordings that may be about memory."""
    folder = catalog.run(run)[0].file.folder
    listed = {name: stamp for _, page in storage.files_in(folder) for name, stamp in page.items()}
    names = [name for name in sorted(listed) if name.endswith(ENDINGS)]
    for name in [name for name in names if not TRACE_NAME.match(name)][:MOST_FILES]:
        path = urls.join(folder, name)
        identity = hashlib.sha256(f"memory:{path}".encode("utf-8", "surrogateescape"))
        try:
            yield identity.hexdigest()[:12], path, listed[name] or storage.stamp(path)
        except (OSError, UnreadableError):  # gone in the meantime, or no regular file
            continue


def _file(identity: str, path: str, stamp: FileStamp) -> MemoryFile | None:
    """Return a file that is about memory by its first bytes, or says so by its name."""
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
        problem = f"It is larger than {MOST_FILE_BYTES >> 20} MiB. {TOO_LARGE}"
    name = urls.name(path)
    return MemoryFile(
        id=identity, name=name, what=what, file_bytes=stamp.size_bytes, problem=problem
    )


def _is_pickle(path: str) -> bool:
    return path.endswith((".pickle", ".pkl", ".pickle.gz"))


def _kept_report(identity: str, path: str, stamp: FileStamp) -> MemoryFileReport:
    key = path, stamp
    with _lock:
        if key not in _kept:
            _kept[key] = _report(identity, path, stamp)
        _kept.move_to_end(key)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
        return _kept[key]


def _report(identity: str, path: str, stamp: FileStamp) -> MemoryFileReport:
    """Read a file.

    Raises:
        UnreadableError: it is too large, damaged, or no file about memory.
    """
    if stamp.size_bytes > MOST_FILE_BYTES:
        message = f"This is larger than {MOST_FILE_BYTES >> 20} MiB."
        raise UnreadableError(path, message, TOO_LARGE)
    document = memory_files.read(path, most_bytes=MOST_READ_BYTES)
    if document is None:
        raise UnreadableError(path, "This is no memory snapshot or timeline.", "")
    found: tuple[MemoryReport, tuple[MemoryFileCurve, ...]]
    if document.what == "timeline":
        timeline = timeline_of(document)
        found = report_of_timeline(timeline, most_rows=MOST_ROWS), _of_timeline(timeline)
    else:
        snapshot = snapshot_of(document.content, path)
        found = report_of_snapshot(snapshot, most_rows=MOST_ROWS), _of_snapshot(snapshot)
    told, curves = found
    return MemoryFileReport(
        schema=SCHEMA_VERSION,
        id=identity,
        name=urls.name(path),
        what=document.what,
        summary=told.summary,
        curves=curves,
        tables=tuple(_table(table) for table in told.tables),
    )


def _table(table: MemoryTable) -> Table:
    build: Callable[..., pd.DataFrame] = partial(_same, table.rows)
    public = PublicTable(title=table.title, meaning="", schema=table.schema, build=build)
    shown = shown_table(public, table.rows, RowOrder(limit=MOST_ROWS))
    return msgspec.structs.replace(
        shown,
        empty=table.missing or "The file tells of none.",
        all_row_count=shown.row_count + table.left_out,
    )


def _same(frame: pd.DataFrame, _: object) -> pd.DataFrame:
    return frame


def _of_timeline(timeline: MemoryTimeline) -> tuple[MemoryFileCurve, ...]:
    curve = category_curve(timeline)
    if not len(curve):
        return ()
    time_ns = curve["time_ns"].to_numpy()
    shown = {name: curve[f"{name}_bytes"].to_numpy() for name in CATEGORIES}
    shown = {name: values for name, values in shown.items() if values.any()}
    levels = [curve["total_bytes"].to_numpy().astype(np.float64)]
    levels += [values.astype(np.float64) for values in shown.values()]
    places = decimated_indices(time_ns, levels, int(time_ns[0]), int(time_ns[-1]), PIXELS)
    meanings = {column.name: column.meaning for column in CURVE_SCHEMA}
    lines = tuple(
        MemoryLine(
            id=name,
            label=name.replace("_", " ").capitalize(),
            help=meanings[f"{name}_bytes"],
            bytes=values[places].tolist(),
        )
        for name, values in shown.items()
    )
    return (
        MemoryFileCurve(
            title="What memory is for, over time",
            is_stacked=True,
            is_in_time=True,
            at=time_ns[places].tolist(),
            lines=lines,
        ),
    )


def _of_snapshot(snapshot: MemorySnapshot) -> tuple[MemoryFileCurve, ...]:
    return tuple(_of_history(snapshot, each) for each in histories(snapshot) if len(each.rows))


def _of_history(snapshot: MemorySnapshot, history: History) -> MemoryFileCurve:
    """Return a device's levels; over its entries where these have no times, or go back in time."""
    at = snapshot.entries["time_ns"].to_numpy()[history.rows]
    is_in_time = bool(at[0] >= 0 and at[-1] > at[0] and (np.diff(at) >= 0).all())
    at = at - at[0] if is_in_time else np.arange(len(at))
    levels = history.requested_bytes, history.reserved_bytes
    drawn = [level.astype(np.float64) for level in levels]
    places = decimated_indices(at, drawn, int(at[0]), int(at[-1]), PIXELS)
    words = (
        ("requested", "Held by tensors", "What tensors asked for, without rounding."),
        ("reserved", "Reserved", "What the allocator took from the device."),
    )
    return MemoryFileCurve(
        title=f"Device {history.device} over time",
        is_stacked=False,
        is_in_time=is_in_time,
        at=at[places].tolist(),
        lines=tuple(
            MemoryLine(id=name, label=label, help=text, bytes=level[places].tolist())
            for (name, label, text), level in zip(words, levels, strict=True)
        ),
    )
