"""The work itself, wherever it is done: read a file, work out its advice."""

from stepscope import ingest
from stepscope.model.read import trace_of
from stepscope.readers import column_cache
from stepscope.readers.requests import OnProgress, Phase, ReadProgress, ReadRequest, ReadResult


def perform(order: ReadRequest, tell: OnProgress, opened: str = "") -> ReadResult:
    """Do what an order says, in this process; `opened` is the file's path where it is another.

    Raises:
        UnreadableError: the file cannot be opened, is no trace, or holds no event.
    """
    telling = _Telling(order, tell)
    path = opened or order.file.path
    columns = column_cache.columns_of(
        path, order.stamp, order.cache, lambda: ingest.read(path, telling.progress)
    )
    telling.begin("analysing", events=len(columns))
    trace = trace_of(order.file, columns)
    prepared = None
    for phase, step in order.steps:
        telling.begin(phase, events=len(columns))
        prepared = step(trace)
    return ReadResult(trace=trace if order.returns_trace else None, prepared=prepared)


class _Telling:
    """Turns what the reader of bytes tells into what we tell."""

    def __init__(self, order: ReadRequest, tell: OnProgress) -> None:
        self._tell = tell
        self._size_bytes = order.stamp.size_bytes if order.stamp else 0
        tell(ReadProgress(bytes_total=self._size_bytes))

    def progress(self, bytes_done: int, bytes_total: int, events: int) -> None:
        self._size_bytes = bytes_total
        self._tell(ReadProgress(bytes_done=bytes_done, bytes_total=bytes_total, events=events))

    def begin(self, phase: Phase, *, events: int) -> None:
        size = self._size_bytes
        self._tell(ReadProgress(phase=phase, bytes_done=size, bytes_total=size, events=events))
