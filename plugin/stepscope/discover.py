"""Which runs, workers and recordings are there: names only, nothing is opened.

`torch.profiler.tensorboard_trace_handler(folder, worker_name)` writes
`<worker>.<time>.pt.trace.json[.gz]`. A folder with such files is a run; the part before the time
is the worker; the files of one worker, by time, are its spans 1, 2, ….
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from stepscope import storage
from stepscope.errors import UnreadableError

TRACE_NAME = re.compile(r"^(?P<worker>.*?)(?:\.(?P<time>\d+))?\.pt\.trace\.json(?:\.gz)?$")
LOOKED_FOR = "files named <worker>.<time>.pt.trace.json or <worker>.<time>.pt.trace.json.gz"
HOW_TO_RECORD = (
    "Record one with torch.profiler.profile("
    'on_trace_ready=torch.profiler.tensorboard_trace_handler("log/run")).'
)


@dataclass(frozen=True, kw_only=True)
class TraceFile:
    """One recording of one worker, not opened yet."""

    id: str
    """Opaque, stable as long as the path is."""
    path: str
    run: str
    worker: str
    span: str


def _identifier(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def run_identifier(run: str) -> str:
    """Return the opaque id under which the API knows a run."""
    return _identifier(f"run:{run}")


def _spans(run: str, folder: str, names: Iterable[str]) -> list[TraceFile]:
    matches = [(match, name) for name in names if (match := TRACE_NAME.match(name))]
    workers: dict[str, list[tuple[int, str]]] = {}
    for match, name in matches:
        time = int(match["time"] or 0)
        workers.setdefault(match["worker"] or "worker", []).append((time, name))
    found: list[TraceFile] = []
    for worker in sorted(workers):
        for number, (_, name) in enumerate(sorted(workers[worker]), start=1):
            path = str(PurePath(folder, name))
            found.append(
                TraceFile(id=_identifier(path), path=path, run=run, worker=worker, span=str(number))
            )
    return found


def _run_name(root: str, folder: str) -> str:
    relative = PurePath(folder).relative_to(root).as_posix()
    return PurePath(root).name or root if relative == "." else relative


def in_folder(root: str, prefix: str = "") -> list[TraceFile]:
    """Return every recording under `root`, by run, worker and time.

    `prefix` goes before each run's name, for a log directory that was given a name.
    """
    found: list[TraceFile] = []
    for folder, names in storage.walk(root):
        run = _run_name(root, folder)
        found += _spans(f"{prefix}/{run}" if prefix else run, folder, names)
    return found


def at(path: str) -> list[TraceFile]:
    """Return the recordings at a path: a log directory, a run's folder, or one trace file.

    Raises:
        UnreadableError: nothing is there, or a folder holds no trace.
    """
    if not storage.exists(path):
        raise UnreadableError(path, "there is no such file or folder", "Check the path")
    if not storage.is_folder(path):
        return [_single(path)]
    found = in_folder(str(PurePath(path)))
    if not found:
        raise UnreadableError(path, f"no trace here: looked for {LOOKED_FOR}", HOW_TO_RECORD)
    return found


def _single(path: str) -> TraceFile:
    pure = PurePath(path)
    match = TRACE_NAME.match(pure.name)
    worker = match["worker"] if match and match["worker"] else pure.name.split(".")[0]
    run = pure.parent.name or "."
    return TraceFile(id=_identifier(path), path=path, run=run, worker=worker, span="1")
