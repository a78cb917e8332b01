"""Trace files to `Trace`s and `Run`s."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepscope import ingest
from stepscope.discover import TraceFile
from stepscope.errors import UnreadableError, unforeseen
from stepscope.ingest import EventColumns
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
    return trace_of(file, ingest.read(file.path, progress))


def trace_of(file: TraceFile, columns: EventColumns) -> Trace:
    """Return the recording in a file whose events these are."""
    return trace_from_columns(
        columns, worker=file.worker, span=file.span, identity=file.id, path=file.path
    )


def read_runs(files: Iterable[TraceFile], progress: FileProgress = lambda _: None) -> Reading:
    """Read every file; one that cannot be read is a problem, and the others go on.

    The files of one folder are a run; `discover.arranged` has told the runs' names apart.
    """
    traces: dict[str, list[Trace]] = {}
    names: dict[str, str] = {}
    problems: list[UnreadableError] = []
    for file in files:
        try:
            trace = read_trace(file, progress(file))
        except Exception as error:  # whatever is wrong with one file, the others go on
            problems.append(unforeseen(file.path, error))
        else:
            traces.setdefault(file.folder, []).append(trace)
            names[file.folder] = file.run
    return Reading(
        runs=tuple(Run(name=names[folder], workers=tuple(own)) for folder, own in traces.items()),
        problems=tuple(problems),
    )
