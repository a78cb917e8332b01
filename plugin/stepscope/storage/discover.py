"""Discovery of runs, workers and trace files by their names; no file is opened.

`torch.profiler.tensorboard_trace_handler(folder, worker_name)` writes
`<worker>.<time>.pt.trace.json[.gz]`. A folder with such files is a run; the part before the time
is the worker; the files of one worker, by time, are its spans 1, 2, ….
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from stepscope import storage
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.storage import FileStamp

TRACE_NAME = re.compile(r"^(?P<worker>.*?)(?:\.(?P<time>\d+))?\.pt\.trace\.json(?:\.gz)?$")
FIRST_NANOSECONDS = 10**15
"""Larger times in names are nanoseconds: as milliseconds, this is the year 33658."""
TRACE_NAMES = "files named <worker>.<time>.pt.trace.json or <worker>.<time>.pt.trace.json.gz"
OTHER_NAMES = (".json", ".json.gz")
SEPARATOR = re.compile(r"[/\\]")
FLATTENED = re.compile(r"[a-z][a-z0-9+.-]+:/[^/]")
FLATTENED_REMEDY = "Pass an address as text: pathlib removes a slash from s3://bucket."
HOW_TO_RECORD = (
    "Record one with `stepscope record -- python train.py`, or with torch.profiler.profile("
    'on_trace_ready=torch.profiler.tensorboard_trace_handler("log/run")).'
)


@dataclass(frozen=True, kw_only=True)
class TraceFile:
    """One trace file of one worker."""

    id: str
    """Opaque id, derived from the path."""
    path: str
    run: str
    worker: str
    span: str
    listed: FileStamp | None = field(default=None, compare=False)
    """Its stamp, if the listing includes one."""

    @cached_property
    def folder(self) -> str:
        """Its folder, which is its run."""
        return urls.parent(self.path)

    @cached_property
    def recorded_ns(self) -> int:
        """Unix time of recording from its name; 0 if the name has none.

        torch before 2.1 wrote milliseconds (pytorch#97392).
        """
        match = TRACE_NAME.match(urls.name(self.path))
        time = int((match and match["time"]) or 0)
        return time if time >= FIRST_NANOSECONDS else time * 1_000_000

    @cached_property
    def run_id(self) -> str:
        """Opaque id of its run."""
        return run_identifier(self.folder)


def _identifier(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def run_identifier(folder: str) -> str:
    """Return the opaque id of a folder's run."""
    return _identifier(f"run:{folder}")


def as_runs(files: Iterable[TraceFile]) -> list[TraceFile]:
    """Return trace files with unique run names, and spans numbered by time.

    Runs of the same name are named by their folders.
    """
    names = _names(files := list(files))
    workers: dict[tuple[str, str], list[TraceFile]] = {}
    for file in files:
        workers.setdefault((file.folder, file.worker), []).append(file)
    return [
        replace(file, run=names[folder], span=str(number))
        for (folder, _), spans in workers.items()
        for number, file in enumerate(sorted(spans, key=lambda f: (f.recorded_ns, f.path)), start=1)
    ]


def _names(files: Iterable[TraceFile]) -> dict[str, str]:
    """Return the name of each folder's run; a path may also be the name of another run."""
    names = {file.folder: file.run for file in files}
    while shared := {name for name, count in Counter(names.values()).items() if count > 1}:
        names = {f: _full_name(f) if name in shared else name for f, name in names.items()}
    return names


def _full_name(folder: str) -> str:
    """Return a folder's path; if secrets are removed from it, with the run's id."""
    shown = urls.redacted(folder)
    return folder if shown == folder else f"{shown} ({run_identifier(folder)})"


def _run_name(root: str, folder: str) -> str:
    below = urls.relative(root, folder)
    return urls.displayed(below) or urls.name(root) or urls.redacted(root)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A part of a folder's listing."""

    file_count: int
    """Number of files, traces or not."""
    files: tuple[TraceFile, ...]


def pages(root: str, prefix: str = "") -> Iterator[Page]:
    """Yield the trace files under `root`, in any order, page by page.

    `prefix` precedes each run's name.

    Raises:
        UnreadableError: Remote storage refuses to list the folder, or stops responding.
    """
    for folder, listed in storage.walk(root, TRACE_NAME.match):
        run = _run_name(root, folder)
        run = f"{prefix}/{run}" if prefix else run
        files = (_trace_file(folder, name, run, stamp) for name, stamp in listed.items())
        yield Page(file_count=len(listed), files=tuple(filter(None, files)))


def page_of_file(path: str, prefix: str = "") -> tuple[Page, ...]:
    """Return a page with one trace file, of any name; `prefix` precedes its run's name."""
    file = _single(path)
    run = f"{prefix}/{file.run}" if prefix else file.run
    try:
        count = int(storage.exists(path))
    except OSError:  # reading it says why
        count = 1
    return (Page(file_count=count, files=(replace(file, run=run),)),)


def sorted_files(files: Iterable[TraceFile]) -> list[TraceFile]:
    """Return one log directory's trace files, sorted by folder and worker."""
    files = list(files)
    folders = {file.folder: SEPARATOR.split(file.folder) for file in files}
    return sorted(files, key=lambda file: (folders[file.folder], file.worker))


def _ignore(_: Page) -> None:
    pass


def in_folder(
    root: str, prefix: str = "", on_page: Callable[[Page], None] = _ignore
) -> list[TraceFile]:
    """Return every trace file under `root`, by run, worker and time.

    Raises:
        UnreadableError: Remote storage refuses to list the folder.
    """
    files: list[TraceFile] = []
    for page in pages(root, prefix):
        files.extend(page.files)
        on_page(page)
    return as_runs(sorted_files(files))


def _trace_file(folder: str, name: str, run: str, listed: FileStamp | None) -> TraceFile | None:
    """Return a trace file if the name is that of a trace, otherwise None."""
    match = TRACE_NAME.match(name)
    if match is None:
        return None
    path = urls.join(folder, name)
    worker = urls.displayed(match["worker"]) or "worker"
    return TraceFile(
        id=_identifier(path), path=path, run=run, worker=worker, span="1", listed=listed
    )


def at(path: str, on_page: Callable[[Page], None] = _ignore) -> list[TraceFile]:
    """Return the trace files at a path or address: a log directory, a run's folder, a trace file.

    `on_page` receives each page of a folder's listing.

    Raises:
        UnreadableError: the path does not exist, is closed, or is a folder without traces.
    """
    try:
        if not storage.exists(path):
            remedy = FLATTENED_REMEDY if FLATTENED.match(path) else similar_path_remedy(path)
            raise UnreadableError(path, "There is no such file or folder.", remedy)
    # a name too long, a zero byte, or a folder that is not accessible
    except (OSError, ValueError) as error:
        message = f"This cannot be opened: {getattr(error, 'strerror', None) or error}."
        raise UnreadableError(path, message, "Check the path and its permissions.") from error
    if not storage.is_folder(path):
        return [_single(path)]
    if files := in_folder(urls.tidy(path), on_page=on_page):
        return files
    remedy = HOW_TO_RECORD
    if other := _other_json(path):
        remedy = f"To read a trace with another name, pass its path, such as {other}. {remedy}"
    raise UnreadableError(path, f"There is no trace here. Traces are {TRACE_NAMES}.", remedy)


def similar_path_remedy(path: str) -> str:
    """Return the remedy for a missing path: a question with similar ones, if there are any."""
    similar = storage.similar_paths(path)
    return f"Did you mean {' or '.join(similar)}?" if similar else "Check the path."


def _other_json(root: str) -> str:
    """Return the first JSON file whose name is not that of a trace."""
    named = (urls.join(folder, name) for folder, names in storage.walk(root) for name in names)
    return next((path for path in named if path.endswith(OTHER_NAMES)), "")


def other_json_files(folder: str) -> list[str]:
    """Return the JSON files of a folder whose names are not those of traces.

    Raises:
        OSError: The folder cannot be listed.
        UnreadableError: The same for a remote folder.
    """
    names = [name for _, page in storage.files_in(folder) for name in page]
    return [
        urls.join(folder, name)
        for name in names
        if name.endswith(OTHER_NAMES) and not TRACE_NAME.match(name)
    ]


def _single(path: str) -> TraceFile:
    name = urls.name(path)
    match = TRACE_NAME.match(name)
    worker = match["worker"] if match and match["worker"] else name.split(".")[0]
    run = urls.name(urls.parent(path)) or "."
    return TraceFile(id=_identifier(path), path=path, run=run, worker=worker, span="1")
