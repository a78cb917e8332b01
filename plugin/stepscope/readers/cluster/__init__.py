"""Reading on a Dask cluster: tasks carry paths and return what is asked for, never events.

`Cluster` is a `Reader` like the pool of this machine's processes. What goes wrong on the way costs
as little as can be: a worker that is killed, one that cannot open a file, a scheduler that goes.
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
from stepscope.readers.cluster.replies import NoClusterError, Patience
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

__all__ = ["Cluster", "NoClusterError", "Patience"]

log = logging.getLogger(__name__)

T = TypeVar("T")
FIRST_SLOTS = 8
"""Orders in flight before it is known how many workers there are."""
LOOK_SECONDS = 1.0
CLOSE_SECONDS = 5.0
REST_SECONDS = 30.0
"""Once nobody answered, nobody is asked again for so long: a thousand files would wait in turn."""


class Cluster:
    """Reads files on the workers of a Dask scheduler; any number of threads may ask at once."""

    def __init__(
        self,
        address: str,
        *,
        say: Callable[[str], None] = log.warning,
        patience: Patience | None = None,
    ) -> None:
        """`address` is `tcp://host:8786`, or a scheduler file; nothing is done before it is needed.

        `say` is told what the user should know while there is nothing to show yet.
        """
        self.address = address
        self._say = say
        self._patience = patience or Patience()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._session: Session | None = None
        self._opening: asyncio.Lock | None = None
        self._refused: tuple[float, NoClusterError] | None = None
        self._is_closed = False

    @property
    def slots(self) -> int:
        """How many orders to have in flight, so that no worker waits."""
        session = self._session
        return FIRST_SLOTS if session is None else session.crew.slots

    def connect(self) -> None:
        """Connect now.

        Raises:
            NoClusterError: Dask is missing, nobody answers, or there are no workers to ask.
        """
        self._done(self._opened())

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        """Carry out an order, and return when that is done.

        Raises:
            CancelledError: the reading was ended.
            UnreadableError: the file cannot be used, or the cluster has gone.
        """
        stop.check()
        tell(_waiting(order))
        try:
            return self._done(self._carried_out(order, tell), stop)
        except NoClusterError as error:
            raise error.of_file(order.file.path) from error

    def read_all(
        self,
        orders: Sequence[ReadRequest],
        *,
        monitor: ProgressMonitor = no_monitor,
        on_result: OnResult | None = None,
    ) -> tuple[Outcome, ...]:
        """Carry out every order; return what each gave, in the orders' order.

        `on_result` is given each answer as it comes, on a thread of its own.

        Raises:
            NoClusterError: there is no cluster from the start.
        """
        return self._done(self._all(orders, monitor, on_result))

    def close(self) -> None:
        """End every task and the connection, within some seconds."""
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

    def _done(self, work: Coroutine[Any, Any, T], stop: Stop | None = None) -> T:
        """Have the loop do something, and wait for it."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._running())
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

    def _running(self) -> asyncio.AbstractEventLoop:
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

    async def _opened(self) -> "Session":
        """Return the session; a new one where the last has ended."""
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
                self._session = await open_session(self.address, self._patience, self._say)
            except NoClusterError as error:
                self._refused = monotonic(), error
                raise
            return self._session

    async def _carried_out(self, order: ReadRequest, tell: OnProgress) -> ReadResult:
        return await _carried_out(await self._opened(), order, tell)

    async def _all(
        self, orders: Sequence[ReadRequest], monitor: ProgressMonitor, on_result: OnResult | None
    ) -> tuple[Outcome, ...]:
        """Have as many orders in flight as there are slots, whoever comes and goes."""
        session = await self._opened()
        outcomes: dict[int, Outcome] = {}
        places = iter(range(len(orders)))

        async def pull() -> None:
            for place in places:
                outcomes[place] = await _outcome(session, orders[place], monitor, on_result)

        pullers: set[asyncio.Task[None]] = set()
        try:
            while len(outcomes) < len(orders):
                missing = min(session.crew.slots, len(orders)) - len(pullers)
                pullers |= {asyncio.create_task(pull()) for _ in range(missing)}
                ended, _ = await asyncio.wait(pullers, timeout=LOOK_SECONDS)
                for each in ended:
                    each.result()  # one that failed would leave its orders open for ever
        finally:
            for each in pullers:
                each.cancel()
        return tuple(outcomes[place] for place in range(len(orders)))


async def _outcome(
    session: "Session", order: ReadRequest, monitor: ProgressMonitor, on_result: OnResult | None
) -> Outcome:
    try:
        with monitor(order) as tell:
            tell(_waiting(order))
            answer = await _carried_out(session, order, tell)
            return await asyncio.to_thread(on_result, answer) if on_result else answer
    except NoClusterError as error:
        return error.of_file(order.file.path)
    except Exception as error:  # whatever is wrong with one file, the others go on
        return as_unreadable(order.file.path, error)


async def _carried_out(session: "Session", order: ReadRequest, tell: OnProgress) -> ReadResult:
    from stepscope.readers.cluster.dispatch import Dispatch

    if order.returns_trace:
        msg = "a cluster returns what is worked out of a recording, not the recording"
        raise ValueError(msg)
    return await Dispatch(session=session, order=order, tell=tell).out()


def _waiting(order: ReadRequest) -> ReadProgress:
    return ReadProgress(phase="waiting", bytes_total=order.stamp.size_bytes if order.stamp else 0)


def _run_in(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    return run
