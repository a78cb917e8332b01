"""Readers of files: in this process, or in a pool of processes within one memory budget."""

import logging
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from stepscope import storage
from stepscope.base import host_limits, urls
from stepscope.base.errors import StepscopeError, UnreadableError
from stepscope.readers import memory_estimate
from stepscope.readers.child_process import GoneError, ReaderProcess
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.pipe_messages import Done, Failed, Logged, RemoteError
from stepscope.readers.requests import (
    CancelledError,
    OnProgress,
    ReadProgress,
    ReadRequest,
    ReadResult,
    Stop,
)
from stepscope.storage import FileStamp

log = logging.getLogger(__name__)

SMALL_BYTES = 64 * 2**20
"""JSON size up to which files are read in this process, faster than a process starts."""
IDLE_SECONDS = 20.0
"""Idle time after which processes are ended."""
TRIES = 3
"""Number of processes that may be killed, or end before they accept a file, until the file fails:
mostly the file is not the cause, but it may be.
"""
ENOUGH_MORE = 1.25
"""Minimum factor of memory for a second attempt."""
CLOSED = "the program is ending"
KILLED = frozenset({-signal.SIGTERM, -9})
"""Exit statuses of processes that were killed on purpose; Windows has no signal 9."""
CRASH_REMEDY = (
    "This is a bug in stepscope: please report it. If memory is scarce, a higher limit may help "
    "(--memory)."
)
CRASHED = frozenset({-11, -7, -6})
"""SIGSEGV, SIGBUS, SIGABRT: also raised by compiled code, such as pandas' hash tables, that does
not check whether an allocation succeeded.
"""
IN_MEMORY = "memory"
"""fsspec's file system that only this process can read."""


class Reader(Protocol):
    """Reads one file per thread."""

    def read(self, request: ReadRequest, on_progress: OnProgress, stop: Stop) -> ReadResult:
        """Perform a request and return its result."""


class _NoProcessError(Exception):
    """The system cannot start processes."""


class _KilledError(Exception):
    """The process that read a file was killed, possibly not because of the file."""

    def __init__(self, problem: UnreadableError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _ShortError(Exception):
    """A file exceeded the granted memory, or crashed in a way that lack of memory causes."""

    def __init__(self, problem: UnreadableError, granted_bytes: int) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.granted_bytes = granted_bytes


def read_in_process(request: ReadRequest, on_progress: OnProgress, stop: Stop) -> ReadResult:
    """Perform a request in this process.

    Raises:
        CancelledError: The reading was cancelled.
        UnreadableError: The file cannot be read.
    """
    # Imported here because it imports pandas, which would delay TensorBoard's start.
    from stepscope.readers.file_work import perform

    def report(progress: ReadProgress) -> None:
        stop.check()
        on_progress(progress)

    return perform(request, report)


class InProcessReader:
    """Reads every file in this process, on the caller's thread."""

    def __init__(self, memory_bytes: int | None = None) -> None:
        """`memory_bytes` limits the growth of this process."""
        self._memory_bytes = memory_bytes

    def read(self, request: ReadRequest, on_progress: OnProgress, stop: Stop) -> ReadResult:
        """Perform a request.

        Raises:
            CancelledError: The reading was cancelled.
            UnreadableError: The file cannot be read, or needs too much memory.
        """
        request = replace(request, stamp=_stamp(request))
        try:
            with host_limits.data_limit(self._memory_bytes):
                return read_in_process(request, on_progress, stop)
        except Exception as error:
            if self._memory_bytes is None or not memory_estimate.is_out_of_memory(error):
                raise
        raise memory_estimate.out_of_memory(request.file.path, self._memory_bytes)


class ReaderPool:
    """Reads files in processes; any number of threads may use it at once."""

    def __init__(self, budget: MemoryBudget, *, small_bytes: int = SMALL_BYTES) -> None:
        """`small_bytes` is the JSON size up to which a file is read in this process."""
        self.budget = budget
        self._small_bytes = small_bytes
        self._lock = threading.Lock()
        self._idle: list[ReaderProcess] = []
        self._busy: set[ReaderProcess] = set()
        self._timer: threading.Timer | None = None
        self._is_closed = False
        self._has_processes = True

    def read(self, request: ReadRequest, on_progress: OnProgress, stop: Stop) -> ReadResult:
        """Perform a request, after waiting for memory.

        Raises:
            CancelledError: The reading was cancelled.
            UnreadableError: The file cannot be read, all its readers were killed, or it needs too
                much memory.
        """
        path, stamp = request.file.path, _stamp(request)
        inflated = memory_estimate.inflated_bytes(path, stamp) if stamp else 0
        if stamp:
            memory_estimate.require_fits(path, stamp, inflated, self.budget.total_bytes)
        request = replace(request, stamp=stamp)
        if inflated <= self._small_bytes or urls.scheme(path) == IN_MEMORY:
            return read_in_process(request, on_progress, stop)
        on_progress(ReadProgress(phase="waiting", bytes_total=request.size_bytes))
        try:
            needed_bytes = memory_estimate.needed_bytes(inflated)
            return self._read(needed_bytes, request, on_progress, stop)
        except _ShortError as short:
            if short.granted_bytes * ENOUGH_MORE > self.budget.available_bytes:
                raise short.problem from None
        try:  # the estimate was too low: retry once with the whole budget
            return self._read(self.budget.total_bytes, request, on_progress, stop)
        except _ShortError as short:
            raise short.problem from None

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Ids of the processes that are reading."""
        with self._lock:
            return tuple(process.id for process in self._busy)

    def close(self) -> None:
        """Kill all processes."""
        with self._lock:
            self._is_closed = True
            idle = list(self._idle)
            self._idle.clear()
            for process in self._busy:
                process.kill()  # the thread that waits for it notices its end
        for process in idle:
            process.end()

    def _read(
        self, needed_bytes: int, request: ReadRequest, on_progress: OnProgress, stop: Stop
    ) -> ReadResult:
        with self.budget.reserve(needed_bytes, stop) as granted:
            limit = max(0, granted - memory_estimate.PROCESS_BYTES)
            request = replace(request, memory_bytes=limit)
            killed: _KilledError | None = None
            for attempt in range(TRIES if self._has_processes else 0):
                try:
                    result = self._try(request, granted, on_progress, stop, is_first=attempt == 0)
                except _KilledError as error:
                    killed = error
                    path = urls.redacted(request.file.path)
                    log.info("%s: %s", path, error.problem.message)
                except _NoProcessError as error:
                    self._has_processes = False
                    log.warning("no process can be started (%s): reading on threads instead", error)
                    break
                else:
                    if result is not None:
                        return result
            if killed is not None:  # a file that kills its readers is not read in this process
                raise killed.problem from None
            return read_in_process(request, on_progress, stop)

    def _try(
        self,
        request: ReadRequest,
        granted: int,
        on_progress: OnProgress,
        stop: Stop,
        *,
        is_first: bool,
    ) -> ReadResult | None:
        """Let a process perform a request; None if it ended before it accepted the request.

        Only the first attempt may use an idle process: all idle processes may have been killed
        together.
        """
        process, is_fresh = self._acquire() if is_first else (self._start(), True)
        is_accepted = is_done = False
        try:
            with stop.calls(process.kill):
                for message in process.messages(request):
                    is_accepted = True
                    if isinstance(message, Done):
                        is_done = True
                        return _result(message)
                    _handle(message, granted, on_progress)
        except GoneError as gone:
            stop.check()
            self._check_open()
            if is_accepted and gone.status in CRASHED:
                raise _ShortError(_problem(request.file.path, gone), granted) from None
            if is_accepted and gone.status in KILLED:
                raise _KilledError(_problem(request.file.path, gone)) from None
            if is_accepted:
                raise _problem(request.file.path, gone) from None
            if is_fresh and gone.status >= 0:
                raise _NoProcessError(gone) from None
        finally:
            self._give_back(process, is_good=is_done)
        return None

    def _acquire(self) -> tuple[ReaderProcess, bool]:
        """Return a process, and whether it is new."""
        self._check_open()
        with self._lock:
            if self._idle:
                process = self._idle.pop()
                self._busy.add(process)
                return process, False
        return self._start(), True

    def _start(self) -> ReaderProcess:
        try:
            process = ReaderProcess()
        except OSError as error:
            raise _NoProcessError(error) from error
        with self._lock:
            self._busy.add(process)
            is_late = self._is_closed
        if is_late:
            self._give_back(process, is_good=False)
            raise CancelledError(CLOSED)
        return process

    def _check_open(self) -> None:
        with self._lock:
            if self._is_closed:
                raise CancelledError(CLOSED)

    def _give_back(self, process: ReaderProcess, *, is_good: bool) -> None:
        with self._lock:
            self._busy.discard(process)
            if is_good and not self._is_closed:
                self._idle.append(process)
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = threading.Timer(IDLE_SECONDS, self._end_idle)
                self._timer.daemon = True
                self._timer.start()
                return
        process.kill()
        process.end()

    def _end_idle(self) -> None:
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        for process in idle:
            process.end()


def _stamp(request: ReadRequest) -> FileStamp | None:
    if request.stamp is not None:
        return request.stamp
    with suppress(OSError, StepscopeError):  # the reading reports it
        return storage.stamp(request.file.path)
    return None


def _result(done: Done) -> ReadResult:
    if done.trace is None:
        return ReadResult(prepared=done.prepared)
    from stepscope.readers.trace_transfer import unpack

    return ReadResult(trace=unpack(done.trace), prepared=done.prepared)


def _handle(message: object, granted_bytes: int, on_progress: OnProgress) -> None:
    match message:
        case ReadProgress():
            on_progress(message)
        case Logged(logger=logger, level=level, message=text):
            logging.getLogger(logger).log(level, "%s", text)
        case Failed(problem=problem, is_memory=True):
            raise _ShortError(problem, granted_bytes)
        case Failed(problem=problem, traceback=traceback):
            raise problem from (RemoteError(traceback) if traceback else None)


def _problem(path: str, gone: GoneError) -> UnreadableError:
    if gone.status not in KILLED:
        message = f"The reader of this file crashed ({gone})."
        return UnreadableError(path, message, CRASH_REMEDY)
    message = f"Each reader of this file was killed ({gone}), which happens when memory runs out."
    return UnreadableError(path, message, "Free some memory, or read fewer files at once (--jobs).")
