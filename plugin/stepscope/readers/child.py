"""What runs in a reader's process: orders come on standard input, answers go to standard output.

The process ends with its parent, whatever becomes of that: when standard input ends, or when the
parent's number changes (a program that the parent started may hold the other end open).
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
from stepscope.readers.child_messages import Accepted, Done, Failed, Logged
from stepscope.readers.file_work import perform
from stepscope.readers.requests import ReadProgress, ReadRequest
from stepscope.readers.trace_transfer import pack

log = logging.getLogger(__name__)

TELL_SECONDS = 0.1
"""Progress is told no more often."""
LOOK_SECONDS = 1.0
"""Between two looks whether the parent is still there."""
WORN_BYTES = 256 * 2**20
"""A process that holds so much more than at its start makes way for a fresh one."""


class _Parent:
    """Who asked: everything is told through one pipe, one message at a time."""

    def __init__(self, output: RawIOBase) -> None:
        self._output = output
        self._lock = threading.Lock()
        self._told = ReadProgress()
        self._told_at = 0.0

    def send(self, message: object) -> None:
        with self._lock:
            pipe_messages.send(self._output, message)

    def tell(self, told: ReadProgress) -> None:
        """Tell how far a reading has come, as often as it is worth it."""
        now = time.monotonic()
        if told.phase == self._told.phase and now - self._told_at < TELL_SECONDS:
            return
        self._told, self._told_at = told, now
        self.send(told)


class _Log(logging.Handler):
    """Hands what is logged here to the parent's log."""

    def __init__(self, parent: _Parent) -> None:
        super().__init__()
        self._parent = parent

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        text = record.getMessage()
        self._parent.send(Logged(logger=record.name, level=record.levelno, message=text))


def main() -> None:
    """Carry out orders until there are no more."""
    orders: SimpleQueue[ReadRequest] = SimpleQueue()
    parent = _Parent(FileIO(os.dup(1), "w"))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    logging.basicConfig(handlers=[_Log(parent)])
    use_object_strings()
    for watch in (lambda: _listen(FileIO(0), orders), lambda: _watch(os.getppid())):
        threading.Thread(target=watch, daemon=True).start()
    gc.freeze()  # what was imported stays
    fresh_bytes = host_limits.resident_bytes()
    try:
        while _serve(orders.get(), parent) and _is_as_good_as(fresh_bytes):
            pass
    except OSError:  # nobody is there to hear it
        pass
    os._exit(0)


def _is_as_good_as(fresh_bytes: int) -> bool:
    """Give the system what is not needed; tell whether a fresh process would hold much less."""
    if host_limits.resident_bytes() > fresh_bytes + WORN_BYTES:
        gc.collect()
        host_limits.release_freed_memory()
    return host_limits.resident_bytes() <= fresh_bytes + WORN_BYTES


def _listen(stream: RawIOBase, orders: SimpleQueue[ReadRequest]) -> None:
    """Take orders; where there will be no more, nobody waits for what is being done."""
    try:
        while True:
            orders.put(pipe_messages.receive(stream))
    finally:
        os._exit(0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(0)


def _serve(order: ReadRequest, parent: _Parent) -> bool:
    """Carry out one order; return whether this process is good for another."""
    parent.send(Accepted())
    try:
        with host_limits.data_limit(order.memory_bytes):
            answer = perform(order, parent.tell)
            trace = pack(answer.trace) if answer.trace is not None else None
    except Exception as error:  # whatever is wrong with one file, it is told
        parent.send(_failed(order, error))
        return False
    parent.send(Done(trace=trace, prepared=answer.prepared))
    return True


def _failed(order: ReadRequest, error: Exception) -> Failed:
    path = order.file.path
    if order.memory_bytes is not None and memory_estimate.is_out_of_memory(error):
        return Failed(
            problem=memory_estimate.out_of_memory(path, order.memory_bytes), is_memory=True
        )
    problem = as_unreadable(path, error)
    if isinstance(error, UnreadableError):
        return Failed(problem=problem, is_memory=False)
    log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
    traceback = redacted("".join(format_exception(error)), path)
    return Failed(problem=problem, is_memory=False, traceback=traceback)
