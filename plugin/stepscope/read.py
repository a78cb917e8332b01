"""Trace files to `Trace`s and `Run`s."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath

from stepscope import ingest
from stepscope.discover import TraceFile
from stepscope.errors import UnreadableError
from stepscope.ingest.reader import Progress
from stepscope.trace import Run, Trace, trace_from_columns

FileProgress = Callable[[TraceFile], Progress | None]
"""Called before each file is read; what it returns is told how far that reading has come."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What several files gave: their runs, and the files that could not be read."""

    runs: tuple[Run, ...]
    problems: tuple[UnreadableError, ...]


def read_trace(file: TraceFile, progress: Progress | None = None) -> Trace:
    """Read one recording.

    Raises:
        UnreadableError: the file cannot be opened, is no trace, or holds no event.
    """
    columns = ingest.read(file.path, progress)
    return trace_from_columns(
        columns, worker=file.worker, span=file.span, identity=file.id, path=file.path
    )


def read_runs(files: Iterable[TraceFile], progress: FileProgress = lambda _: None) -> Reading:
    """Read every file; one that cannot be read is a problem, and the others go on.

    The files of one folder are a run; runs of one name are told apart by their folders.
    """
    traces: dict[PurePath, list[Trace]] = {}
    names: dict[PurePath, str] = {}
    problems: list[UnreadableError] = []
    for file in files:
        folder = PurePath(file.path).parent
        try:
            trace = read_trace(file, progress(file))
        except UnreadableError as problem:
            problems.append(problem)
        else:
            traces.setdefault(folder, []).append(trace)
            names[folder] = file.run
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return Reading(
        runs=tuple(
            Run(name=str(folder) if names[folder] in shared else names[folder], workers=tuple(own))
            for folder, own in traces.items()
        ),
        problems=tuple(problems),
    )
