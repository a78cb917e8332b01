"""Conversion of trace files to `Trace`s."""

from dataclasses import replace

from stepscope import ingest
from stepscope.ingest import EventColumns
from stepscope.ingest.reader import Progress
from stepscope.model.execution_trace_link import with_execution_trace
from stepscope.model.trace import Trace, trace_from_columns
from stepscope.storage.discover import TraceFile


def read_trace(file: TraceFile, progress: Progress | None = None) -> Trace:
    """Read one trace.

    Raises:
        UnreadableError: The file cannot be opened, is not a trace, or contains no event.
    """
    return trace_of(file, ingest.read(file.path, progress))


def trace_of(file: TraceFile, columns: EventColumns) -> Trace:
    """Return the trace with these columns of a file, with shapes from an execution trace."""
    columns, link = with_execution_trace(file, columns)
    trace = trace_from_columns(
        columns, worker=file.worker, span=file.span, identity=file.id, path=file.path
    )
    return replace(trace, execution_trace=link)
