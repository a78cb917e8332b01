"""One connection to a cluster, and who works there: it notices when either has gone.

Everything here runs in the one loop of `Cluster`'s thread.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from stepscope.readers.cluster.connection import connect_client, reaches_worker
from stepscope.readers.cluster.replies import PACKAGE, TOPIC, NoClusterError, Patience
from stepscope.readers.cluster.workers import Workers, why_unfit
from stepscope.readers.requests import OnProgress, ReadProgress

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

Say = Callable[[str], None]
LOOK_SECONDS = 0.1
CLOSE_SECONDS = 3.0
VERSIONS_SHARE = 0.5
"""Of the time in which the scheduler must be heard, what workers are given to tell their versions:
one that imports, or computes without a pause, is asked again."""
MOST_NAMED = 3
GONE = "Start it again, and ask again: what was read is known already where summaries are kept."


class Session:
    """A scheduler that answered, and its workers."""

    def __init__(self, address: str, client: "Client", patience: Patience, say: Say) -> None:
        self.address = address
        self.client = client
        self.crew = Workers()
        self.patience = patience
        self.told: dict[str, OnProgress] = {}
        """Who is told how far a task has come, by the task's key."""
        self.starts: Counter[str] = Counter()
        """How often a task was begun, by its key."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises what ended this session, once that has happened."""
        self._say = say
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether orders can be sent."""
        return not self.ended.done()

    def listen(self) -> None:
        """Have the scheduler pass on what workers tell; to be said again when it was restarted."""
        self.client.subscribe_topic(TOPIC, self._heard)  # type: ignore[no-untyped-call]

    async def begin(self) -> None:
        """Wait until there is a worker that can be asked.

        Raises:
            NoClusterError: none came, or none is fit.
        """
        self.listen()
        began, has_said = monotonic(), False
        while not self.crew.is_ready:
            await self._look()
            if self.crew.is_ready:
                break
            if monotonic() - began > self.patience.workers_seconds:
                raise self._nobody()
            if not has_said and monotonic() - began > LOOK_SECONDS:
                self._say(f"waiting for workers at {self.address} ...")
                has_said = True
            if self.crew.threads and not self.crew.is_ready:
                raise self._nobody()
            await asyncio.sleep(LOOK_SECONDS)
        direct = await reaches_worker(self.client, next(iter(self.crew.threads)))
        self.client.direct_to_workers = direct
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """End all tasks and the connection."""
        if self._watching is not None:
            self._watching.cancel()
        self.end(NoClusterError("The reading was ended.", ""))
        with suppress(Exception):
            await asyncio.wait_for(self.client.close(), CLOSE_SECONDS)  # type: ignore[no-untyped-call]

    def end(self, problem: NoClusterError) -> None:
        """Have nobody wait for this cluster any more."""
        if not self.ended.done():
            self.ended.set_exception(problem)
            self.ended.exception()  # it may be that nobody waits

    async def again(self) -> None:
        """Wait until the connection that was lost is there again.

        Raises:
            NoClusterError: it is lost for good.
        """
        began = monotonic()
        while self.client.status == "connecting" and self.is_open:
            if monotonic() - began > self.patience.again_seconds:
                break
            await asyncio.sleep(LOOK_SECONDS)
        if self.client.status != "running":
            self.end(self._lost("it has gone"))
        if self.ended.done():
            self.ended.result()
        self.listen()

    def pass_over(self, worker: str, why: str) -> None:
        """Ask a worker for nothing any more."""
        if worker not in self.crew.unfit:
            self.crew.unfit[worker] = why
            self._say(f"the worker {worker} is passed over: it has {why}")

    def say(self, text: str) -> None:
        """Tell the user something."""
        self._say(text)

    async def _watch(self) -> None:
        """See who comes and goes, and whether the scheduler still answers."""
        heard = had_workers = monotonic()
        while self.is_open:
            await asyncio.sleep(self.patience.look_seconds)
            try:
                await asyncio.wait_for(self._look(), self.patience.silent_seconds)
                heard = monotonic()
            except (OSError, TimeoutError) as error:
                if self.client.status == "closed":
                    self.end(self._lost("it has gone"))
                if monotonic() - heard >= self.patience.silent_seconds:
                    self.end(
                        self._lost(f"it does not answer ({str(error) or type(error).__name__})")
                    )
                continue
            except Exception as error:  # a look may fail; whoever waits must not wait for ever
                log.warning("looking for the cluster's workers failed: %s", error)
                continue
            if self.crew.is_ready:
                had_workers = monotonic()
            elif monotonic() - had_workers > self.patience.workers_seconds:
                self.end(self._nobody())

    async def _look(self) -> None:
        scheduler: Any = self.client.scheduler
        fresh = self.crew.now(await scheduler.ncores())
        if not fresh:
            return
        question = {"op": "versions", "packages": [PACKAGE]}
        asked = scheduler.broadcast(msg=question, workers=fresh, on_error="ignore")
        try:
            answers = await asyncio.wait_for(asked, VERSIONS_SHARE * self.patience.silent_seconds)
        except TimeoutError:
            self.crew.forget(fresh)
            return
        for worker, answer in answers.items():
            why = why_unfit(answer["packages"].get(PACKAGE), _own_version())
            if why is not None:
                self.pass_over(worker, why)

    def _heard(self, event: "tuple[float, dict[str, Any]]") -> None:
        key, told = event[1]["key"], ReadProgress(**event[1]["told"])
        if (tell := self.told.get(key)) is not None:
            self.starts[key] += told == ReadProgress()
            tell(told)

    def _lost(self, what: str) -> NoClusterError:
        return NoClusterError(f"The cluster's scheduler at {self.address} was lost: {what}.", GONE)

    def _nobody(self) -> NoClusterError:
        if not self.crew.unfit:
            seconds = f"{self.patience.workers_seconds:.0f} s"
            message = f"The cluster at {self.address} has had no worker for {seconds}."
            return NoClusterError(message, f"Start some: dask worker {self.address}.")
        named = [f"{each} has {why}" for each, why in self.crew.unfit.items()][:MOST_NAMED]
        message = f"No worker of the cluster at {self.address} can be asked: {'; '.join(named)}."
        remedy = f"Install stepscope {_own_version()} with its extra `dask` on all of them."
        return NoClusterError(message, remedy)


def _own_version() -> str:
    """Return our version as Dask tells that of a worker: by what is installed."""
    from distributed.versions import get_versions

    return str(get_versions(packages=[PACKAGE])["packages"][PACKAGE])


async def open_session(address: str, patience: Patience, say: Say) -> Session:
    """Connect to a cluster, and wait until it has workers.

    Raises:
        NoClusterError: nobody answers, or there is no worker that can be asked.
    """
    client = await connect_client(address, patience)
    session = Session(address, client, patience, say)
    try:
        await session.begin()
    except BaseException as error:
        await session.close()
        if isinstance(error, OSError | TimeoutError):
            raise session._lost(str(error) or type(error).__name__) from error  # noqa: SLF001
        raise
    return session
