"""Where files are read: small ones here, others in processes of their own, within one budget."""

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
from stepscope.readers.child_messages import Done, Failed, Logged, RemoteError
from stepscope.readers.child_process import GoneError, ReaderProcess
from stepscope.readers.memory_budget import MemoryBudget
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
"""JSON that is read here: it takes less time than a process takes to start."""
IDLE_SECONDS = 20.0
"""Processes that have had nothing to do for so long are ended."""
TRIES = 3
"""Processes that a file is given to while they are killed, or end before they take it: most often
that is not the file's doing, but it may be."""
ENOUGH_MORE = 1.25
"""A second try with less more memory than this is not worth it."""
CLOSED = "the program ends"
KILLED = frozenset({-signal.SIGTERM, -9})
"""How a process ends that another one, or the system, wanted to end; Windows knows no signal 9."""
CRASH_REMEDY = (
    "This is a bug in stepscope: please report it. Where memory is scarce, more of it may help"
    " (--memory)."
)
CRASHED = frozenset({-11, -7, -6})
"""SIGSEGV, SIGBUS, SIGABRT: also what compiled code does where it is refused memory and does not
look: pandas' hash tables are one."""
OWN = "memory"
"""Where only this process can read: fsspec's file system in memory."""


class Reader(Protocol):
    """Reads files, one a thread."""

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        """Carry out an order, and return when that is done."""


class _NoProcessError(Exception):
    """This system lets us start none."""


class _KilledError(Exception):
    """The process that read a file was killed, which need not be the file's doing."""

    def __init__(self, problem: UnreadableError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _ShortError(Exception):
    """A file did not fit in the memory that it was given, or crashed in it as such files do."""

    def __init__(self, problem: UnreadableError, granted_bytes: int) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.granted_bytes = granted_bytes


def read_in_process(order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
    """Carry out an order in this process.

    Raises:
        CancelledError: the reading was ended.
        UnreadableError: the file cannot be used.
    """
    # Imported here because it brings pandas, which TensorBoard's start should not wait for.
    from stepscope.readers.file_work import perform

    def told(now: ReadProgress) -> None:
        stop.check()
        tell(now)

    return perform(order, told)


class InProcessReader:
    """Reads every file in this process, on the caller's thread."""

    def __init__(self, memory_bytes: int | None = None) -> None:
        """`memory_bytes` is how much more this process may take, whatever else it does."""
        self._memory_bytes = memory_bytes

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        """Carry out an order.

        Raises:
            CancelledError: the reading was ended.
            UnreadableError: the file cannot be used, or needs more memory than there may be.
        """
        order = replace(order, stamp=_stamp(order))
        try:
            with host_limits.data_limit(self._memory_bytes):
                return read_in_process(order, tell, stop)
        except Exception as error:
            if self._memory_bytes is None or not memory_estimate.is_out_of_memory(error):
                raise
        raise memory_estimate.out_of_memory(order.file.path, self._memory_bytes)


class ReaderPool:
    """Reads files in processes of their own; any number of threads may ask at once."""

    def __init__(
        self,
        room: MemoryBudget,
        *,
        small_bytes: int = SMALL_BYTES,
    ) -> None:
        """`small_bytes` is the JSON up to which a file is read here instead."""
        self.room = room
        self._small_bytes = small_bytes
        self._lock = threading.Lock()
        self._idle: list[ReaderProcess] = []
        self._at_work: set[ReaderProcess] = set()
        self._timer: threading.Timer | None = None
        self._is_closed = False
        self._has_processes = True

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        """Carry out an order: wait for memory, read, and return what the file gave.

        Raises:
            CancelledError: the reading was ended.
            UnreadableError: the file cannot be used, all its readers were killed, or it needs more
                memory than there may be.
        """
        stamp = _stamp(order)
        inflated = memory_estimate.inflated_bytes(order.file.path, stamp) if stamp else 0
        if stamp:
            memory_estimate.require_fits(order.file.path, stamp, inflated, self.room.total_bytes)
        order = replace(order, stamp=stamp)
        if inflated <= self._small_bytes or urls.scheme(order.file.path) == OWN:
            return read_in_process(order, tell, stop)
        tell(ReadProgress(phase="waiting", bytes_total=stamp.size_bytes if stamp else 0))
        try:
            return self._within(memory_estimate.needed_bytes(inflated), order, tell, stop)
        except _ShortError as short:
            if short.granted_bytes * ENOUGH_MORE > self.room.available_bytes:
                raise short.problem from None
        try:  # its size told too little of what is in it: once more, with all that there is
            return self._within(self.room.total_bytes, order, tell, stop)
        except _ShortError as short:
            raise short.problem from None

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The system's numbers of the processes that read something just now."""
        with self._lock:
            return tuple(process.id for process in self._at_work)

    def close(self) -> None:
        """End every process now, whatever it does."""
        with self._lock:
            self._is_closed = True
            idle = list(self._idle)
            self._idle.clear()
            for process in self._at_work:
                process.kill()  # whoever waits for it sees that it ends
        for process in idle:
            process.end()

    def _within(
        self, wanted_bytes: int, order: ReadRequest, tell: OnProgress, stop: Stop
    ) -> ReadResult:
        with self.room.reserve(wanted_bytes, stop) as granted:
            order = replace(order, memory_bytes=max(0, granted - memory_estimate.PROCESS_BYTES))
            killed: _KilledError | None = None
            for place in range(TRIES if self._has_processes else 0):
                try:
                    answer = self._asked(order, granted, tell, stop, is_first=place == 0)
                except _KilledError as error:
                    killed = error
                    log.info("%s: %s", urls.redacted(order.file.path), error.problem.message)
                except _NoProcessError as error:
                    self._has_processes = False
                    log.warning("no process can be started (%s): reading on threads instead", error)
                    break
                else:
                    if answer is not None:
                        return answer
            if killed is not None:  # what kills its readers is not read in this process
                raise killed.problem from None
            return read_in_process(order, tell, stop)

    def _asked(
        self, order: ReadRequest, granted: int, tell: OnProgress, stop: Stop, *, is_first: bool
    ) -> ReadResult | None:
        """Have a process carry out an order; None where it ended before it took it.

        Only the first time it may be one that was idle: whoever killed it may have killed all.
        """
        process, is_fresh = self._taken() if is_first else (self._started(), True)
        is_accepted = is_done = False
        try:
            with stop.calls(process.kill):
                for message in process.asked(order):
                    is_accepted = True
                    if isinstance(message, Done):
                        is_done = True
                        return _answer(message)
                    _heard(message, granted, tell)
        except GoneError as gone:
            stop.check()
            self._check_open()
            if is_accepted and gone.status in CRASHED:
                raise _ShortError(_gone(order.file.path, gone), granted) from None
            if is_accepted and gone.status in KILLED:
                raise _KilledError(_gone(order.file.path, gone)) from None
            if is_accepted:
                raise _gone(order.file.path, gone) from None
            if is_fresh and gone.status >= 0:
                raise _NoProcessError(gone) from None
        finally:
            self._given_back(process, is_good=is_done)
        return None

    def _taken(self) -> tuple[ReaderProcess, bool]:
        """Return a process that has nothing to do, and whether it is a fresh one."""
        self._check_open()
        with self._lock:
            process = self._idle.pop() if self._idle else None
            if process is not None:
                self._at_work.add(process)
                return process, False
        return self._started(), True

    def _started(self) -> ReaderProcess:
        try:
            process = ReaderProcess()
        except OSError as error:
            raise _NoProcessError(error) from error
        with self._lock:
            self._at_work.add(process)
            is_late = self._is_closed
        if is_late:
            self._given_back(process, is_good=False)
            raise CancelledError(CLOSED)
        return process

    def _check_open(self) -> None:
        with self._lock:
            if self._is_closed:
                raise CancelledError(CLOSED)

    def _given_back(self, process: ReaderProcess, *, is_good: bool) -> None:
        with self._lock:
            self._at_work.discard(process)
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


def _stamp(order: ReadRequest) -> FileStamp | None:
    if order.stamp is not None:
        return order.stamp
    with suppress(OSError, StepscopeError):  # whoever reads it will say what is wrong
        return storage.stamp(order.file.path)
    return None


def _answer(done: Done) -> ReadResult:
    if done.trace is None:
        return ReadResult(prepared=done.prepared)
    from stepscope.readers.trace_transfer import unpack

    return ReadResult(trace=unpack(done.trace), prepared=done.prepared)


def _heard(message: object, granted_bytes: int, tell: OnProgress) -> None:
    match message:
        case ReadProgress():
            tell(message)
        case Logged(logger=logger, level=level, message=text):
            logging.getLogger(logger).log(level, "%s", text)
        case Failed(problem=problem, is_memory=True):
            raise _ShortError(problem, granted_bytes)
        case Failed(problem=problem, traceback=traceback):
            raise problem from (RemoteError(traceback) if traceback else None)


def _gone(path: str, gone: GoneError) -> UnreadableError:
    if gone.status not in KILLED:
        message = f"The reader of this file crashed ({gone})."
        return UnreadableError(path, message, CRASH_REMEDY)
    message = f"Each reader of this file was killed ({gone}), as happens when memory runs out."
    return UnreadableError(path, message, "Free some memory, or read fewer files at once (--jobs).")
