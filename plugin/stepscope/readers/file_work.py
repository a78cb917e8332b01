"""Performing a request in the current process."""

from stepscope import ingest
from stepscope.model.read import trace_of
from stepscope.readers import column_cache
from stepscope.readers.requests import OnProgress, Phase, ReadProgress, ReadRequest, ReadResult


def perform(request: ReadRequest, on_progress: OnProgress, local_path: str = "") -> ReadResult:
    """Read a file and run the request's steps; `local_path` overrides the file's path.

    Raises:
        UnreadableError: The file cannot be opened, is not a trace, or contains no event.
    """
    size_bytes = request.size_bytes

    def read(bytes_done: int, bytes_total: int, events: int) -> None:
        nonlocal size_bytes
        size_bytes = bytes_total
        on_progress(ReadProgress(bytes_done=bytes_done, bytes_total=bytes_total, events=events))

    def begin(phase: Phase) -> None:
        on_progress(
            ReadProgress(
                phase=phase, bytes_done=size_bytes, bytes_total=size_bytes, events=len(columns)
            )
        )

    on_progress(ReadProgress(bytes_total=size_bytes))
    path = local_path or request.file.path
    columns = column_cache.columns_of(
        path, request.stamp, request.cache, lambda: ingest.read(path, read)
    )
    begin("analysing")
    trace = trace_of(request.file, columns)
    prepared = None
    for phase, step in request.steps:
        begin(phase)
        prepared = step(trace)
    return ReadResult(trace=trace if request.returns_trace else None, prepared=prepared)
