"""Program of a reader process: requests arrive on stdin, results leave on stdout.

The process ends with its parent: when stdin ends, or when its parent's process id changes (another
program started by the parent may hold the other end of the pipe open).
"""

import gc
import logging
import os
import threading
import time
from io import FileIO, RawIOBase
from queue import SimpleQueue
from traceback import format_exception

from stepscope.base import host_limits
from stepscope.base.errors import UnreadableError, as_unreadable, in_one_line
from stepscope.base.urls import redacted
from stepscope.model.frames.string_storage import use_object_strings
from stepscope.readers import memory_estimate, pipe_messages
from stepscope.readers.file_work import perform
from stepscope.readers.pipe_messages import Accepted, Done, Failed, Logged
from stepscope.readers.requests import ReadProgress, ReadRequest
from stepscope.readers.trace_transfer import pack

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.1
"""Minimum time between two progress reports of one phase."""
PARENT_CHECK_SECONDS = 1.0
MOST_GROWTH_BYTES = 256 * 2**20
"""Memory growth since its start beyond which a process is replaced."""


class _Parent:
    """Sends messages to the parent process, one at a time."""

    def __init__(self, output: RawIOBase) -> None:
        self._output = output
        self._lock = threading.Lock()
        self._progress = ReadProgress()
        self._reported_at = 0.0

    def send(self, message: object) -> None:
        with self._lock:
            pipe_messages.send(self._output, message)

    def report(self, progress: ReadProgress) -> None:
        """Send progress, at most every `REPORT_SECONDS` within a phase."""
        now = time.monotonic()
        if progress.phase == self._progress.phase and now - self._reported_at < REPORT_SECONDS:
            return
        self._progress, self._reported_at = progress, now
        self.send(progress)


class _LogToParent(logging.Handler):
    def __init__(self, parent: _Parent) -> None:
        super().__init__()
        self._parent = parent

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        text = record.getMessage()
        self._parent.send(Logged(logger=record.name, level=record.levelno, message=text))


def main() -> None:
    """Perform requests until there are no more."""
    requests: SimpleQueue[ReadRequest] = SimpleQueue()
    parent = _Parent(FileIO(os.dup(1), "w"))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output of libraries must not mix with messages
    logging.basicConfig(handlers=[_LogToParent(parent)])
    use_object_strings()
    for watch in (lambda: _listen(FileIO(0), requests), lambda: _watch(os.getppid())):
        threading.Thread(target=watch, daemon=True).start()
    gc.freeze()  # imported modules are never freed
    fresh_bytes = host_limits.resident_bytes()
    try:
        while _serve(requests.get(), parent) and _is_as_small_as_new(fresh_bytes):
            pass
    except OSError:  # the parent is gone
        pass
    os._exit(0)


def _is_as_small_as_new(fresh_bytes: int) -> bool:
    """Release unused memory; return whether a new process would use about as much."""
    if host_limits.resident_bytes() > fresh_bytes + MOST_GROWTH_BYTES:
        gc.collect()
        host_limits.release_freed_memory()
    return host_limits.resident_bytes() <= fresh_bytes + MOST_GROWTH_BYTES


def _listen(stream: RawIOBase, requests: SimpleQueue[ReadRequest]) -> None:
    """Receive requests; when they end, exit even during the current one."""
    try:
        while True:
            requests.put(pipe_messages.receive(stream))
    finally:
        os._exit(0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(0)


def _serve(request: ReadRequest, parent: _Parent) -> bool:
    """Perform one request; return whether this process can serve another."""
    parent.send(Accepted())
    try:
        with host_limits.data_limit(request.memory_bytes):
            result = perform(request, parent.report)
            trace = pack(result.trace) if result.trace is not None else None
    except Exception as error:  # any error of a file is reported
        parent.send(_failed(request, error))
        return False
    parent.send(Done(trace=trace, prepared=result.prepared))
    return True


def _failed(request: ReadRequest, error: Exception) -> Failed:
    path = request.file.path
    if request.memory_bytes is not None and memory_estimate.is_out_of_memory(error):
        problem = memory_estimate.out_of_memory(path, request.memory_bytes)
        return Failed(problem=problem, is_memory=True)
    problem = as_unreadable(path, error)
    if isinstance(error, UnreadableError):
        return Failed(problem=problem, is_memory=False)
    log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
    traceback = redacted("".join(format_exception(error)), path)
    return Failed(problem=problem, is_memory=False, traceback=traceback)
