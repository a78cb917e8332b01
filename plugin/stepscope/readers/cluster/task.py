"""Program of a cluster's worker: performs one request and returns its small result.

A cancelled reading ends at its next progress report.
"""

import logging
import pickle
import socket
import time
from dataclasses import asdict, dataclass, field, replace
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from stepscope import storage
from stepscope._version import __version__
from stepscope.base import host_limits
from stepscope.base.errors import UnreadableError, as_unreadable, in_one_line
from stepscope.base.urls import redacted
from stepscope.model.frames.string_storage import object_strings
from stepscope.readers import memory_estimate
from stepscope.readers.cluster.replies import TOPIC, CannotOpen, Done, Failed, Result, WrongVersion
from stepscope.readers.file_work import perform
from stepscope.readers.requests import CancelledError, ReadProgress, ReadRequest
from stepscope.storage import FileStamp

if TYPE_CHECKING:
    from distributed import Worker

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.5
"""Minimum time between two progress reports of one phase."""
USED_SHARE = 0.85
"""Usable fraction of a worker's limit: at 95 % Dask's nanny kills it."""
MORE_MEMORY = (
    "Give the workers more memory (dask worker --memory-limit), fewer threads each "
    "(--nthreads 1), or record fewer steps."
)
INSTALL = "Install the packages of this machine on the workers, packages of rules included."


@dataclass(frozen=True, kw_only=True)
class RemoteRequest:
    """A request in the form in which it is sent."""

    version: str
    request: bytes = field(repr=False)
    """A pickle, loaded only by the same version."""
    path: str = field(repr=False)
    """The file's absolute path or address; not in `repr`, since Dask logs arguments, and an address
    may contain secrets.
    """


def run_request(remote: RemoteRequest) -> Result:
    """Perform a request in this worker.

    Raises:
        CancelledError: The reading was cancelled.
    """
    from distributed import get_worker

    worker = get_worker()
    if remote.version != __version__:
        return WrongVersion(worker=worker.address, version=__version__)
    try:
        request: ReadRequest = pickle.loads(remote.request)  # noqa: S301 (its users' code)
    except (ImportError, AttributeError) as error:
        message = f"The worker {worker.address} cannot load the request: {error}."
        return Failed(message=message, remedy=INSTALL)
    reporter = _Reporter(worker)
    reporter.report(ReadProgress())
    try:
        stamp = storage.stamp(remote.path)
    except (OSError, UnreadableError) as error:
        return _cannot_open(error, worker)
    request = replace(request, stamp=request.stamp or stamp)
    return _perform(request, remote.path, reporter, stamp)


def _perform(request: ReadRequest, path: str, reporter: "_Reporter", stamp: FileStamp) -> Result:
    worker = reporter.worker
    limit = _limit_bytes(worker)
    request = replace(request, memory_bytes=limit if worker.state.nthreads == 1 else None)
    try:
        if limit is not None:
            inflated = memory_estimate.inflated_bytes(path, stamp)
            memory_estimate.require_fits(path, stamp, inflated, limit)
    except UnreadableError as error:
        return Failed(message=error.message, remedy=MORE_MEMORY)
    try:
        # The system limits processes, not threads.
        with object_strings(), host_limits.data_limit(request.memory_bytes):
            result = perform(request, reporter.report, path)
    except CancelledError:
        raise
    except Exception as error:  # any error of a file is reported
        return _failed(request, path, error, worker)
    return Done(
        prepared=result.prepared,
        host=socket.gethostname(),
        worker=worker.address,
        size_bytes=stamp.size_bytes,
    )


def _failed(request: ReadRequest, path: str, error: Exception, worker: "Worker") -> Result:
    if request.memory_bytes is not None and memory_estimate.is_out_of_memory(error):
        short = memory_estimate.out_of_memory(path, request.memory_bytes)
        return Failed(message=short.message, remedy=MORE_MEMORY)
    if isinstance(error, UnreadableError):
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno is not None:
            return _cannot_open(cause, worker)
        return Failed(message=error.message, remedy=error.remedy)
    log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
    problem = as_unreadable(path, error)
    traceback = redacted("".join(format_exception(error)), path)
    return Failed(message=problem.message, remedy=problem.remedy, traceback=traceback)


def _cannot_open(error: OSError | UnreadableError, worker: "Worker") -> CannotOpen:
    reason = error.message if isinstance(error, UnreadableError) else error.strerror or str(error)
    return CannotOpen(host=socket.gethostname(), worker=worker.address, reason=reason.rstrip("."))


def _limit_bytes(worker: "Worker") -> int | None:
    """Return the memory that a thread of the worker may use for one file; None for no limit."""
    limit = worker.memory_manager.memory_limit
    if not limit:
        return None
    return max(0, int(limit * USED_SHARE) - host_limits.resident_bytes()) // worker.state.nthreads


class _Reporter:
    """Reports one reading's progress to the client."""

    def __init__(self, worker: "Worker") -> None:
        self.worker = worker
        self._key: Any = worker.get_current_task()
        self._phase = ""
        self._reported_at = 0.0

    def report(self, progress: ReadProgress) -> None:
        """Send progress, at most every `REPORT_SECONDS` within a phase.

        Raises:
            CancelledError: The reading was cancelled.
        """
        task = self.worker.state.tasks.get(self._key)
        if task is None or task.state == "cancelled":
            msg = "the reading was cancelled"
            raise CancelledError(msg)
        now = time.monotonic()
        if progress.phase == self._phase and now - self._reported_at < REPORT_SECONDS:
            return
        self._phase, self._reported_at = progress.phase, now
        self.worker.log_event(TOPIC, {"key": self._key, "progress": asdict(progress)})
