"""Reading on a Dask cluster: tasks receive paths and return results, never events.

`Cluster` is a `Reader` like the pool of local processes. A killed worker, a worker that cannot open
a file, and a lost scheduler cause as little extra work as possible.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from stepscope.base.errors import as_unreadable
from stepscope.readers.batch import OnResult, Outcome, ProgressMonitor, no_monitor
from stepscope.readers.cluster.replies import NoClusterError, Timeouts
from stepscope.readers.requests import (
    CancelledError,
    OnProgress,
    ReadProgress,
    ReadRequest,
    ReadResult,
    Stop,
)

if TYPE_CHECKING:
    from stepscope.readers.cluster.session import Session

__all__ = ["Cluster", "NoClusterError", "Timeouts"]

log = logging.getLogger(__name__)

T = TypeVar("T")
FIRST_SLOTS = 8
"""Requests in flight while the number of workers is unknown."""
CHECK_SECONDS = 1.0
CLOSE_SECONDS = 5.0
REST_SECONDS = 30.0
"""Pause after a failed connection: otherwise a thousand files would each wait for the timeout."""


class Cluster:
    """Reads files on the workers of a Dask scheduler; any number of threads may use it at once."""

    def __init__(
        self,
        address: str,
        *,
        say: Callable[[str], None] = log.warning,
        timeouts: Timeouts | None = None,
    ) -> None:
        """`address` is `tcp://host:8786`, or a scheduler file; connected at the first use.

        `say` receives messages for the user.
        """
        self.address = address
        self._say = say
        self._timeouts = timeouts or Timeouts()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._session: Session | None = None
        self._opening: asyncio.Lock | None = None
        self._refused: tuple[float, NoClusterError] | None = None
        self._is_closed = False

    @property
    def slots(self) -> int:
        """Number of requests to have in flight so that no worker is idle."""
        session = self._session
        return FIRST_SLOTS if session is None else session.workers.slots

    def connect(self) -> None:
        """Connect now.

        Raises:
            NoClusterError: Dask is missing, the scheduler does not respond, or it has no workers.
        """
        self._run(self._open())

    def read(self, request: ReadRequest, on_progress: OnProgress, stop: Stop) -> ReadResult:
        """Perform a request and return its result.

        Raises:
            CancelledError: The reading was cancelled.
            UnreadableError: The file cannot be read, or the cluster was lost.
        """
        stop.check()
        on_progress(_waiting(request))

        async def read() -> ReadResult:
            return await _dispatch(await self._open(), request, on_progress)

        try:
            return self._run(read(), stop)
        except NoClusterError as error:
            raise error.of_file(request.file.path) from error

    def read_all(
        self,
        requests: Sequence[ReadRequest],
        *,
        monitor: ProgressMonitor = no_monitor,
        on_result: OnResult | None = None,
    ) -> tuple[Outcome, ...]:
        """Perform every request; return the outcomes in the requests' order.

        `on_result` is called on a thread.

        Raises:
            NoClusterError: The cluster is unavailable from the start.
        """
        return self._run(self._read_all(requests, monitor, on_result))

    def close(self) -> None:
        """Cancel all tasks and close the connection, within some seconds."""
        with self._lock:
            self._is_closed = True
            loop, thread, session = self._loop, self._thread, self._session
        if loop is None or thread is None:
            return
        if session is not None:
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(session.close(), loop).result(CLOSE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_SECONDS)

    def _run(self, work: Coroutine[Any, Any, T], stop: Stop | None = None) -> T:
        """Run a coroutine in the loop, and wait for it."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._running_loop())
        except CancelledError:
            work.close()
            raise

        def cancel() -> None:
            future.cancel()

        try:
            with (stop or Stop()).calls(cancel):
                return future.result()
        except BaseException:
            future.cancel()
            if stop is not None:
                stop.check()
            raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._is_closed:
                msg = "the program ends"
                raise CancelledError(msg)
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._opening = asyncio.Lock()
                run = _run_in(self._loop)
                self._thread = threading.Thread(target=run, name="stepscope-cluster", daemon=True)
                self._thread.start()
            return self._loop

    async def _open(self) -> "Session":
        """Return the session; a new one if the last has ended."""
        from stepscope.readers.cluster.session import open_session

        if self._opening is None:
            raise AssertionError
        async with self._opening:
            if self._session is not None and self._session.is_open:
                return self._session
            if self._refused is not None and monotonic() - self._refused[0] < REST_SECONDS:
                raise self._refused[1]
            if self._session is not None:
                await self._session.close()
            try:
                self._session = await open_session(self.address, self._timeouts, self._say)
            except NoClusterError as error:
                self._refused = monotonic(), error
                raise
            return self._session

    async def _read_all(
        self,
        requests: Sequence[ReadRequest],
        monitor: ProgressMonitor,
        on_result: OnResult | None,
    ) -> tuple[Outcome, ...]:
        """Keep as many requests in flight as there are slots, while workers come and go."""
        session = await self._open()
        outcomes: dict[int, Outcome] = {}
        indexes = iter(range(len(requests)))

        async def pull() -> None:
            for index in indexes:
                outcomes[index] = await _outcome(session, requests[index], monitor, on_result)

        pullers: set[asyncio.Task[None]] = set()
        try:
            while len(outcomes) < len(requests):
                missing = min(session.workers.slots, len(requests)) - len(pullers)
                pullers |= {asyncio.create_task(pull()) for _ in range(missing)}
                ended, _ = await asyncio.wait(pullers, timeout=CHECK_SECONDS)
                for puller in ended:
                    puller.result()  # an unnoticed failure would leave its requests open forever
        finally:
            for puller in pullers:
                puller.cancel()
        return tuple(outcomes[index] for index in range(len(requests)))


async def _outcome(
    session: "Session", request: ReadRequest, monitor: ProgressMonitor, on_result: OnResult | None
) -> Outcome:
    try:
        with monitor(request) as on_progress:
            on_progress(_waiting(request))
            result = await _dispatch(session, request, on_progress)
            return await asyncio.to_thread(on_result, result) if on_result else result
    except NoClusterError as error:
        return error.of_file(request.file.path)
    except Exception as error:  # an error of one file must not stop the others
        return as_unreadable(request.file.path, error)


async def _dispatch(
    session: "Session", request: ReadRequest, on_progress: OnProgress
) -> ReadResult:
    from stepscope.readers.cluster.dispatch import Dispatch

    if request.returns_trace:
        msg = "a cluster returns the results of steps, not the trace"
        raise ValueError(msg)
    return await Dispatch(session=session, request=request, on_progress=on_progress).run()


def _waiting(request: ReadRequest) -> ReadProgress:
    return ReadProgress(phase="waiting", bytes_total=request.size_bytes)


def _run_in(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    return run
