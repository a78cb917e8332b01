"""Answers that take long, computed on a few threads of their own.

The threads of the server only wait for them, so that small answers and the other tabs of
TensorBoard do not. The requests that wait are limited, equal requests share a computation, and each
has a time limit. A computation that exceeds it, or whose clients have all gone, ends at its next
analysis. Threads, not processes: they share the traces in memory with their results, and compiled
code holds the interpreter's lock for a fraction of a second at most (`benchmarks.server_load`).
"""

import atexit
import gc
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import flask

from stepscope.api import http_errors
from stepscope.base import interruption

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

T = TypeVar("T")
Lane = Literal["quick", "long"]
"""`quick`: answers about a few events of a trace, which do not wait for tables and advice."""
RUNNING_COUNTS = {"quick": 2, "long": 1}
"""Computations of a lane that run at once. More would not end earlier, since they share the
interpreter's lock, and would delay small responses: with two long ones, four times as much.
"""
WAITING_COUNTS = {"quick": 8, "long": 16}
"""Requests of a lane that wait at once, including those whose computation runs."""
DOWNLOAD_COUNT = 8
"""Downloads that are sent at once: each needs a thread until the client has received it."""
LOOK_SECONDS = 0.25
"""Pause between two checks whether a waiting client is still connected."""


SWITCH_SECONDS = 0.001
"""Longest time for which Python code on a thread keeps the interpreter's lock from others, 0.005 by
default. A small response needs the lock several times.
"""


class Computations:
    """The computations of an app, and the downloads that it sends."""

    def __init__(self, seconds: float | None) -> None:
        """`seconds` is the time limit; None: everything is computed at once, without limits."""
        self._lanes = {
            lane: _Lane(RUNNING_COUNTS[lane], count, seconds)
            for lane, count in WAITING_COUNTS.items()
            if seconds is not None
        }
        if seconds is not None:
            sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
            atexit.register(gc.freeze)  # at the end, Python would collect among all traces
        self._downloads = threading.BoundedSemaphore(DOWNLOAD_COUNT)

    def result(self, lane: Lane | None, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of `compute`; requests with equal keys share one computation.

        Without a lane, and for the requests that a computation sends itself, the result is computed
        on this thread.

        Raises:
            RefusalError: too many requests wait, or the time limit is exceeded.
        """
        if lane not in self._lanes or interruption.is_interruptible():
            return compute()
        environment = flask.request.environ
        copied = flask.copy_current_request_context(compute)
        return cast("T", self._lanes[lane].result(key, copied, lambda: is_client_gone(environment)))

    def sent(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a download; close it to let another one begin.

        Raises:
            RefusalError: too many downloads are being sent.
        """
        if not self._lanes:
            return iter(pieces)
        if not self._downloads.acquire(blocking=False):
            message = "Other downloads are being sent."
            raise http_errors.busy(message)
        return _Download(pieces, self._downloads)


class _Download:
    """Pieces that are sent; a generator would not be closed if it never began."""

    def __init__(self, pieces: Iterable[bytes], slots: threading.BoundedSemaphore) -> None:
        self._pieces = iter(pieces)
        self._slots = slots
        self._is_open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._slots.release()
            with suppress(AttributeError):
                self._pieces.close()  # type: ignore[attr-defined]


@dataclass(kw_only=True, eq=False)
class _Computation:
    key: Hashable
    compute: Callable[[], object]
    ends_at: float
    waiter_count: int = 1
    done: threading.Event = field(default_factory=threading.Event)
    result: object = None
    error: Exception | None = None
    is_interrupted: bool = False

    def is_needed(self) -> bool:
        return self.waiter_count > 0 and monotonic() < self.ends_at

    def run(self) -> None:
        try:
            with interruption.interruptible(self.is_needed):
                interruption.check()
                self.result = self.compute()
        except interruption.InterruptedComputation:
            self.is_interrupted = True
        except Exception as error:  # raised again in the threads that wait
            self.error = error
        finally:
            self.done.set()


class _Lane:
    """Computations that run a few at once."""

    def __init__(self, running_count: int, waiting_count: int, seconds: float) -> None:
        self._most_running = running_count
        self._most_waiting = waiting_count
        self._seconds = seconds
        self._lock = threading.Lock()
        self._shared: dict[Hashable, _Computation] = {}
        self._queue: deque[_Computation] = deque()
        self._running: set[_Computation] = set()
        self._waiting_count = 0

    def result(
        self, key: Hashable, compute: Callable[[], object], is_gone: Callable[[], bool]
    ) -> object:
        computation = self._join(key, compute)
        try:
            self._start()
            while not computation.done.wait(LOOK_SECONDS):
                if monotonic() >= computation.ends_at or is_gone():
                    break
                self._start()
        finally:
            with self._lock:
                self._waiting_count -= 1
                computation.waiter_count -= 1
                if not computation.waiter_count:
                    self._drop(computation)
        if computation.error is not None:
            raise computation.error
        if computation.is_interrupted or not computation.done.is_set():
            raise http_errors.too_slow(self._seconds)
        return computation.result

    def _join(self, key: Hashable, compute: Callable[[], object]) -> _Computation:
        with self._lock:
            if self._waiting_count >= self._most_waiting:
                message = "Other answers are being computed."
                raise http_errors.busy(message)
            self._waiting_count += 1
            shared = self._shared.get(key)
            if shared is not None:
                shared.waiter_count += 1
                return shared
            ends_at = monotonic() + self._seconds
            computation = _Computation(key=key, compute=compute, ends_at=ends_at)
            self._shared[key] = computation
            self._queue.append(computation)
        return computation

    def _start(self) -> None:
        with self._lock:
            if not self._queue or not self._may_start():
                return
        threading.Thread(target=self._work, name="stepscope-answers", daemon=True).start()

    def _may_start(self) -> bool:
        """Return whether another thread may run: one that does not end in time is replaced once."""
        now = monotonic()
        in_time = sum(now < computation.ends_at for computation in self._running)
        return in_time < self._most_running and len(self._running) < 2 * self._most_running

    def _drop(self, computation: _Computation) -> None:
        """Forget a computation that nobody waits for; if it runs, it ends at its next check."""
        if self._shared.get(computation.key) is computation:
            del self._shared[computation.key]
        if computation in self._queue:
            self._queue.remove(computation)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue or not self._may_start():
                    return
                computation = self._queue.popleft()
                self._running.add(computation)
            computation.run()
            with self._lock:
                self._running.discard(computation)
                if self._shared.get(computation.key) is computation:
                    del self._shared[computation.key]


def is_client_gone(environment: "WSGIEnvironment") -> bool:
    """Return whether a request's client has closed the connection; False if that is unknown."""
    if is_disconnected := environment.get("waitress.client_disconnected"):
        return bool(is_disconnected())
    connection = environment.get("werkzeug.socket")
    if isinstance(connection, socket.socket) and hasattr(socket, "MSG_DONTWAIT"):
        with suppress(BlockingIOError, ConnectionError):
            return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    return False
