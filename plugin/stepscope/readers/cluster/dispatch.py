"""One order on a cluster: sent, sent again where that helps, and answered or given up."""

import asyncio
import logging
import pickle
from collections.abc import Awaitable
from concurrent.futures import CancelledError as LostFutureError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stepscope import storage
from stepscope._version import __version__
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.readers.child_messages import RemoteError
from stepscope.readers.cluster.replies import (
    PACKAGE,
    CannotOpen,
    Done,
    Failed,
    Result,
    WrongVersion,
)
from stepscope.readers.cluster.session import Session
from stepscope.readers.cluster.task import RemoteRequest, run_request
from stepscope.readers.requests import CancelledError, OnProgress, ReadRequest, ReadResult

if TYPE_CHECKING:
    from distributed import Future

log = logging.getLogger(__name__)

MOST_REFUSALS = 16
"""Workers that are asked for a file that none of them can open."""
MOST_TRIES = 4
"""Times that an order is sent for reasons that are not the file's."""
INNOCENT_STARTS = 1
"""A file that was begun no more often is not why all workers that had it were killed."""
LOOK_SECONDS = 2.0
KILLED = "The workers of the cluster that read this were killed, one after another."
KILLED_REMEDY = (
    "Look at their log. Where memory ran out, give them more (dask worker --memory-limit) or fewer "
    "threads; else read this file without --scheduler, and report what that says."
)
LOST_REMEDY = "Look at the log of the scheduler and of its workers, and ask again."


class _LostError(Exception):
    """The order was lost for a reason that may not be the file's."""


@dataclass(kw_only=True)
class Dispatch:
    """One order, until it is answered."""

    session: Session
    order: ReadRequest
    tell: OnProgress
    _refusals: dict[str, CannotOpen] = field(default_factory=dict)

    async def out(self) -> ReadResult:
        """Carry it out.

        Raises:
            NoClusterError: the cluster has gone.
            UnreadableError: the file cannot be used, or kills the workers that read it.
        """
        parcel = _parcel(self.order)
        reason = ""
        for _ in range(MOST_TRIES):
            try:
                return await self._answered(parcel)
            except _LostError as lost:
                reason = str(lost)
                log.info("%s is sent again: %s", urls.redacted(self.order.file.path), reason)
        message = f"It was lost {MOST_TRIES} times: {reason}."
        raise self._problem(message, LOST_REMEDY)

    async def _answered(self, parcel: RemoteRequest) -> ReadResult:
        """Ask one worker after another until one can open the file."""
        while True:
            workers = self.session.crew.asked(self._refusals)
            if self._refusals and (workers == [] or len(self._refusals) >= MOST_REFUSALS):
                raise self._unseen()
            result = await self._asked(parcel, workers)
            if isinstance(result, Done) and self._is_of_another_file(result.size_bytes):
                reason = f"there it is another file, of {result.size_bytes:,} bytes"
                result = CannotOpen(host=result.host, worker=result.worker, reason=reason)
            if isinstance(result, CannotOpen):
                self._refusals[result.worker] = result
            elif isinstance(result, WrongVersion):
                self.session.pass_over(result.worker, f"stepscope {result.version}")
            else:
                return self._answer(result)

    def _answer(self, result: Done | Failed) -> ReadResult:
        """Return what the file gave; who could not open such files is not asked for ever."""
        for each in self.session.crew.was_seen(self._refusals.values()):
            path = urls.redacted(self.order.file.path)
            self.session.say(
                f"the worker {each.worker} on {each.host} is passed over: "
                f"it cannot open {path} ({each.reason}), and others can"
            )
        if isinstance(result, Done):
            return ReadResult(prepared=result.prepared)
        cause = RemoteError(result.traceback) if result.traceback else None
        raise self._problem(result.message, result.remedy) from cause

    async def _asked(self, parcel: RemoteRequest, workers: list[str] | None) -> Result:
        """Send it once.

        Raises:
            NoClusterError: the cluster has gone.
            UnreadableError: it kills the workers that read it.
            _LostError: it should be sent again.
        """
        from distributed import KilledWorker

        session, key = self.session, f"{PACKAGE}-{uuid4().hex}"
        session.told[key] = self.tell
        future = session.client.submit(
            run_request, parcel, key=key, workers=workers, allow_other_workers=False, pure=False
        )
        try:
            return await self._first(future, workers)
        except KilledWorker:
            if session.starts[key] > INNOCENT_STARTS:
                raise self._problem(KILLED, KILLED_REMEDY) from None
            msg = "the workers that it was sent to were killed"
            raise _LostError(msg) from None
        except (LostFutureError, CancelledError, OSError) as error:
            await session.again()
            raise _LostError(str(error) or type(error).__name__) from error
        except ImportError as error:  # a worker that has come a moment ago, without stepscope
            await asyncio.sleep(2 * session.patience.look_seconds)
            raise _LostError(str(error)) from error
        finally:
            future.release()  # type: ignore[no-untyped-call]
            del session.told[key], session.starts[key]

    async def _first(self, future: "Future[Result]", workers: list[str] | None) -> Result:
        """Wait for the answer, or until it cannot come any more."""
        answer: Awaitable[Result] = future.result()  # type: ignore[assignment] # a client in a loop
        waiting = asyncio.ensure_future(answer)
        patience = None if workers is None else LOOK_SECONDS
        try:
            while not waiting.done():
                both: set[asyncio.Future[Any]] = {waiting, self.session.ended}
                await asyncio.wait(both, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    break
                if self.session.ended.done():
                    self.session.ended.result()
                if workers is not None and not self.session.crew.threads.keys() & set(workers):
                    msg = "the workers that could read it have gone"
                    raise _LostError(msg)
            return waiting.result()
        finally:
            waiting.cancel()

    def _is_of_another_file(self, size_bytes: int) -> bool:
        """Tell whether a worker has something else at the path, and nothing changed here."""
        path, stamp = self.order.file.path, self.order.stamp
        if stamp is None or stamp.size_bytes == size_bytes or urls.is_remote(path):
            return False
        with suppress(OSError):
            return storage.stamp(path) == stamp
        return False

    def _unseen(self) -> UnreadableError:
        said = [f"{each.reason} ({each.worker} on {each.host})" for each in self._refusals.values()]
        count = len(said)
        message = f"None of the {count} workers that were asked can open this: {said[0]}."
        folder = urls.redacted(urls.parent(_everywhere(self.order.file.path)))
        if urls.is_remote(folder):
            remedy = "Give the workers the credentials and extras that this machine has."
        else:
            remedy = f"Mount {folder} at the same path on the workers, or put the traces on s3://."
        return self._problem(message, remedy)

    def _problem(self, message: str, remedy: str) -> UnreadableError:
        return UnreadableError(self.order.file.path, message, remedy)


def _parcel(order: ReadRequest) -> RemoteRequest:
    return RemoteRequest(
        version=__version__,
        order=pickle.dumps(order, protocol=5),
        path=_everywhere(order.file.path),
    )


def _everywhere(path: str) -> str:
    """Return the path as it is for a program that runs in another folder."""
    return path if urls.is_remote(path) else str(Path(path).absolute())
