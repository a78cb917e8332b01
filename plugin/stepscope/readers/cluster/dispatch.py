"""One request on a cluster: sent, sent again if that may help, and answered or given up."""

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
from stepscope.readers.pipe_messages import RemoteError
from stepscope.readers.requests import CancelledError, OnProgress, ReadRequest, ReadResult

if TYPE_CHECKING:
    from distributed import Future

log = logging.getLogger(__name__)

MOST_REFUSALS = 16
"""Limit of workers that try to open a file before it is reported as unreadable."""
MOST_TRIES = 4
"""Limit of attempts for reasons other than the request's file."""
INNOCENT_STARTS = 1
"""Number of starts up to which a file is not considered the cause of its workers' death."""
CHECK_SECONDS = 2.0
KILLED = "The workers of the cluster that read this were killed, one after another."
KILLED_REMEDY = (
    "Check their logs. If memory ran out, give them more (dask worker --memory-limit) or fewer "
    "threads; otherwise read this file without --scheduler, and report the error."
)
LOST_REMEDY = "Check the logs of the scheduler and of its workers, and try again."


class _LostError(Exception):
    """The request was lost, possibly not because of its file."""


@dataclass(kw_only=True)
class Dispatch:
    """One request until its result."""

    session: Session
    request: ReadRequest
    on_progress: OnProgress
    _refusals: dict[str, CannotOpen] = field(default_factory=dict)

    async def run(self) -> ReadResult:
        """Perform the request.

        Raises:
            NoClusterError: The cluster was lost.
            UnreadableError: The file cannot be read, or kills the workers that read it.
        """
        remote = RemoteRequest(
            version=__version__,
            request=pickle.dumps(self.request, protocol=5),
            path=_absolute(self.request.file.path),
        )
        reason = ""
        for _ in range(MOST_TRIES):
            try:
                return await self._try_workers(remote)
            except _LostError as lost:
                reason = str(lost)
                log.info("%s is sent again: %s", urls.redacted(self.request.file.path), reason)
        message = f"It was lost {MOST_TRIES} times: {reason}."
        raise self._problem(message, LOST_REMEDY)

    async def _try_workers(self, remote: RemoteRequest) -> ReadResult:
        """Try one worker after another until one of them can open the file."""
        while True:
            workers = self.session.workers.candidates(self._refusals)
            if self._refusals and (workers == [] or len(self._refusals) >= MOST_REFUSALS):
                raise self._cannot_open()
            reply = await self._send(remote, workers)
            if isinstance(reply, Done) and self._is_of_another_file(reply.size_bytes):
                reason = (
                    f"the file at this path has a different size there: {reply.size_bytes:,} bytes"
                )
                reply = CannotOpen(host=reply.host, worker=reply.worker, reason=reason)
            if isinstance(reply, CannotOpen):
                self._refusals[reply.worker] = reply
            elif isinstance(reply, WrongVersion):
                self.session.exclude(reply.worker, f"stepscope {reply.version}")
            else:
                return self._result(reply)

    def _result(self, reply: Done | Failed) -> ReadResult:
        """Return the result; exclude workers that repeatedly failed to open files."""
        for refusal in self.session.workers.count_refusals(self._refusals.values()):
            path = urls.redacted(self.request.file.path)
            self.session.say(
                f"the worker {refusal.worker} on {refusal.host} is no longer used: it cannot open "
                f"{path} ({refusal.reason}), but others can"
            )
        if isinstance(reply, Done):
            return ReadResult(prepared=reply.prepared)
        cause = RemoteError(reply.traceback) if reply.traceback else None
        raise self._problem(reply.message, reply.remedy) from cause

    async def _send(self, remote: RemoteRequest, workers: list[str] | None) -> Result:
        """Send the request once.

        Raises:
            NoClusterError: The cluster was lost.
            UnreadableError: It kills the workers that read it.
            _LostError: It should be sent again.
        """
        from distributed import KilledWorker

        session, key = self.session, f"{PACKAGE}-{uuid4().hex}"
        session.listeners[key] = self.on_progress
        future = session.client.submit(
            run_request, remote, key=key, workers=workers, allow_other_workers=False, pure=False
        )
        try:
            return await self._reply(future, workers)
        except KilledWorker:
            if session.starts[key] > INNOCENT_STARTS:
                raise self._problem(KILLED, KILLED_REMEDY) from None
            msg = "all workers that received it were killed"
            raise _LostError(msg) from None
        except (LostFutureError, CancelledError, OSError) as error:
            await session.reconnect()
            raise _LostError(str(error) or type(error).__name__) from error
        except ImportError as error:  # a new worker without stepscope
            await asyncio.sleep(2 * session.timeouts.look_seconds)
            raise _LostError(str(error)) from error
        finally:
            future.release()  # type: ignore[no-untyped-call]
            del session.listeners[key], session.starts[key]

    async def _reply(self, future: "Future[Result]", workers: list[str] | None) -> Result:
        """Wait for the reply, or until no reply can arrive."""
        reply: Awaitable[Result] = future.result()  # type: ignore[assignment] # a client in a loop
        waiting = asyncio.ensure_future(reply)
        timeout = None if workers is None else CHECK_SECONDS
        try:
            while not waiting.done():
                both: set[asyncio.Future[Any]] = {waiting, self.session.ended}
                await asyncio.wait(both, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    break
                if self.session.ended.done():
                    self.session.ended.result()
                if workers is not None and not self.session.workers.threads.keys() & set(workers):
                    msg = "the workers that could read it have left"
                    raise _LostError(msg)
            return waiting.result()
        finally:
            waiting.cancel()

    def _is_of_another_file(self, size_bytes: int) -> bool:
        """Return whether a worker has another file at the path, and the local file is unchanged."""
        path, stamp = self.request.file.path, self.request.stamp
        if stamp is None or stamp.size_bytes == size_bytes or urls.is_remote(path):
            return False
        with suppress(OSError):
            return storage.stamp(path) == stamp
        return False

    def _cannot_open(self) -> UnreadableError:
        count, first = len(self._refusals), next(iter(self._refusals.values()))
        reason = f"{first.reason} ({first.worker} on {first.host})"
        message = f"None of the {count} workers that tried can open this: {reason}."
        folder = urls.redacted(urls.parent(_absolute(self.request.file.path)))
        if urls.is_remote(folder):
            remedy = "Give the workers this machine's credentials and extras."
        else:
            remedy = f"Mount {folder} at the same path on the workers, or put the traces on s3://."
        return self._problem(message, remedy)

    def _problem(self, message: str, remedy: str) -> UnreadableError:
        return UnreadableError(self.request.file.path, message, remedy)


def _absolute(path: str) -> str:
    return path if urls.is_remote(path) else str(Path(path).absolute())
