"""One connection to a cluster and its workers, which detects the loss of either.

All of this runs in the loop of `Cluster`'s thread.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from stepscope.readers.cluster.connection import connect_client, reaches_worker
from stepscope.readers.cluster.replies import PACKAGE, TOPIC, NoClusterError, Timeouts
from stepscope.readers.cluster.workers import Workers, unfit_reason
from stepscope.readers.requests import OnProgress, ReadProgress

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

Say = Callable[[str], None]
CHECK_SECONDS = 0.1
CLOSE_SECONDS = 3.0
VERSIONS_SHARE = 0.5
"""Fraction of the scheduler's time limit in which workers report their versions; a worker that is
importing or computing without a pause is queried again.
"""
MOST_NAMED = 3
GONE = "Start it again, and try again: results are reused if summaries are stored."


class Session:
    """A connected scheduler and its workers."""

    def __init__(self, address: str, client: "Client", timeouts: Timeouts, say: Say) -> None:
        self.address = address
        self.client = client
        self.workers = Workers()
        self.timeouts = timeouts
        self.listeners: dict[str, OnProgress] = {}
        """Receivers of a task's progress, by the task's key."""
        self.starts: Counter[str] = Counter()
        """Number of times that a task was started, by its key."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises the error that ended this session."""
        self.say = say
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """True while requests can be sent."""
        return not self.ended.done()

    def listen(self) -> None:
        """Subscribe to the workers' progress; required again after a restart of the scheduler."""
        self.client.subscribe_topic(TOPIC, self._report)  # type: ignore[no-untyped-call]

    async def begin(self) -> None:
        """Wait until there is a usable worker.

        Raises:
            NoClusterError: No worker connected, or none is usable.
        """
        self.listen()
        began, is_announced = monotonic(), False
        while not self.workers.is_ready:
            await self._check_workers()
            if self.workers.is_ready:
                break
            if monotonic() - began > self.timeouts.workers_seconds:
                raise self._no_worker()
            if not is_announced and monotonic() - began > CHECK_SECONDS:
                self.say(f"waiting for workers at {self.address} ...")
                is_announced = True
            if self.workers.threads and not self.workers.is_ready:
                raise self._no_worker()
            await asyncio.sleep(CHECK_SECONDS)
        direct = await reaches_worker(self.client, next(iter(self.workers.threads)))
        self.client.direct_to_workers = direct
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Cancel all tasks and close the connection."""
        if self._watching is not None:
            self._watching.cancel()
        self.end(NoClusterError("The reading was stopped.", ""))
        with suppress(Exception):
            await asyncio.wait_for(self.client.close(), CLOSE_SECONDS)  # type: ignore[no-untyped-call]

    def end(self, problem: NoClusterError) -> None:
        """Raise a problem in all requests."""
        if not self.ended.done():
            self.ended.set_exception(problem)
            self.ended.exception()  # there may be no pending request to receive it

    async def reconnect(self) -> None:
        """Wait until a lost connection is restored.

        Raises:
            NoClusterError: The connection is lost for good.
        """
        began = monotonic()
        while self.client.status == "connecting" and self.is_open:
            if monotonic() - began > self.timeouts.again_seconds:
                break
            await asyncio.sleep(CHECK_SECONDS)
        if self.client.status != "running":
            self.end(self._lost("it has closed the connection"))
        if self.ended.done():
            self.ended.result()
        self.listen()

    def exclude(self, worker: str, why: str) -> None:
        """Send no more requests to a worker."""
        if worker not in self.workers.unfit:
            self.workers.unfit[worker] = why
            self.say(f"the worker {worker} is not used: it has {why}")

    async def _watch(self) -> None:
        """Track the workers, and check that the scheduler responds."""
        heard = had_workers = monotonic()
        while self.is_open:
            await asyncio.sleep(self.timeouts.look_seconds)
            try:
                await asyncio.wait_for(self._check_workers(), self.timeouts.silent_seconds)
                heard = monotonic()
            except (OSError, TimeoutError) as error:
                if self.client.status == "closed":
                    self.end(self._lost("it has closed the connection"))
                if monotonic() - heard >= self.timeouts.silent_seconds:
                    reason = str(error) or type(error).__name__
                    self.end(self._lost(f"it does not respond ({reason})"))
                continue
            except Exception as error:  # a check may fail; requests must not wait forever
                log.warning("checking the cluster's workers failed: %s", error)
                continue
            if self.workers.is_ready:
                had_workers = monotonic()
            elif monotonic() - had_workers > self.timeouts.workers_seconds:
                self.end(self._no_worker())

    async def _check_workers(self) -> None:
        scheduler: Any = self.client.scheduler
        fresh = self.workers.update(await scheduler.ncores())
        if not fresh:
            return
        question = {"op": "versions", "packages": [PACKAGE]}
        broadcast = scheduler.broadcast(msg=question, workers=fresh, on_error="ignore")
        try:
            limit = VERSIONS_SHARE * self.timeouts.silent_seconds
            versions = await asyncio.wait_for(broadcast, limit)
        except TimeoutError:
            self.workers.forget(fresh)
            return
        for worker, version in versions.items():
            why = unfit_reason(version["packages"].get(PACKAGE), _local_version())
            if why is not None:
                self.exclude(worker, why)

    def _report(self, event: "tuple[float, dict[str, Any]]") -> None:
        key, progress = event[1]["key"], ReadProgress(**event[1]["progress"])
        if (on_progress := self.listeners.get(key)) is not None:
            self.starts[key] += progress == ReadProgress()
            on_progress(progress)

    def _lost(self, reason: str) -> NoClusterError:
        message = f"The cluster's scheduler at {self.address} was lost: {reason}."
        return NoClusterError(message, GONE)

    def _no_worker(self) -> NoClusterError:
        unfit = self.workers.unfit
        if not unfit:
            seconds = f"{self.timeouts.workers_seconds:.0f} s"
            message = f"The cluster at {self.address} has had no worker for {seconds}."
            return NoClusterError(message, f"Start some: dask worker {self.address}.")
        named = [f"{worker} has {why}" for worker, why in unfit.items()][:MOST_NAMED]
        message = f"No worker of the cluster at {self.address} is usable: {'; '.join(named)}."
        remedy = f"Install stepscope {_local_version()} with its extra `dask` on all of them."
        return NoClusterError(message, remedy)


def _local_version() -> str:
    """Return the installed package's version, as Dask reports it for workers."""
    from distributed.versions import get_versions

    return str(get_versions(packages=[PACKAGE])["packages"][PACKAGE])


async def open_session(address: str, timeouts: Timeouts, say: Say) -> Session:
    """Connect to a cluster, and wait until it has workers.

    Raises:
        NoClusterError: The scheduler does not respond, or has no usable worker.
    """
    client = await connect_client(address, timeouts)
    session = Session(address, client, timeouts, say)
    try:
        await session.begin()
    except BaseException as error:
        await session.close()
        if isinstance(error, OSError | TimeoutError):
            raise session._lost(str(error) or type(error).__name__) from error  # noqa: SLF001
        raise
    return session
