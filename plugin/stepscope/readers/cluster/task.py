"""What runs in a cluster's worker: one order, whose answer is small; events never travel.

A reading that nobody waits for any more ends the next time that it tells how far it has come.
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

TELL_SECONDS = 0.5
"""Progress is told no more often, but for each new phase."""
USED_SHARE = 0.85
"""Of a worker's limit: at 95 % Dask's nanny kills it."""
MORE_MEMORY = (
    "Give the workers more memory (dask worker --memory-limit), fewer threads each "
    "(--nthreads 1), or record fewer steps."
)
INSTALL = "Install on the workers what is installed here, packages of rules with it."


@dataclass(frozen=True, kw_only=True)
class RemoteRequest:
    """An order as it is sent."""

    version: str
    order: bytes = field(repr=False)
    """A pickle: it is only opened where the version is the same."""
    path: str = field(repr=False)
    """Where the file is for all machines: no relative path. Dask logs what a task is given, and an
    address may hold secrets."""


def run_request(parcel: RemoteRequest) -> Result:
    """Carry out an order in this worker.

    Raises:
        CancelledError: nobody waits for it any more.
    """
    from distributed import get_worker

    worker = get_worker()
    if parcel.version != __version__:
        return WrongVersion(worker=worker.address, version=__version__)
    try:
        order: ReadRequest = pickle.loads(parcel.order)  # noqa: S301 (a cluster runs its users' code)
    except (ImportError, AttributeError) as error:
        return Failed(message=f"A worker, {worker.address}, says: {error}.", remedy=INSTALL)
    course = _Course(worker)
    course.tell(ReadProgress())
    try:
        seen = storage.stamp(parcel.path)
    except (OSError, UnreadableError) as error:
        return _unseen(error, worker)
    return _answer(replace(order, stamp=order.stamp or seen), parcel.path, course, seen)


def _answer(order: ReadRequest, path: str, course: "_Course", seen: FileStamp) -> Result:
    worker = course.worker
    most = _most_bytes(worker)
    order = replace(order, memory_bytes=most if worker.state.nthreads == 1 else None)
    if most is not None and (refused := _refused(path, seen, most)) is not None:
        return refused
    try:
        # The system has a limit for the process, none for one of its threads.
        with object_strings(), host_limits.data_limit(order.memory_bytes):
            answer = perform(order, course.tell, path)
    except CancelledError:
        raise
    except Exception as error:  # whatever is wrong with one file, it is told
        return _failed(order, path, error, worker)
    return Done(
        prepared=answer.prepared,
        host=socket.gethostname(),
        worker=worker.address,
        size_bytes=seen.size_bytes,
    )


def _refused(path: str, seen: FileStamp, most: int) -> Failed | None:
    try:
        memory_estimate.require_fits(path, seen, memory_estimate.inflated_bytes(path, seen), most)
    except UnreadableError as error:
        return Failed(message=error.message, remedy=MORE_MEMORY)
    return None


def _failed(order: ReadRequest, path: str, error: Exception, worker: "Worker") -> Result:
    if order.memory_bytes is not None and memory_estimate.is_out_of_memory(error):
        short = memory_estimate.out_of_memory(path, order.memory_bytes)
        return Failed(message=short.message, remedy=MORE_MEMORY)
    if isinstance(error, UnreadableError):
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno is not None:
            return _unseen(cause, worker)
        return Failed(message=error.message, remedy=error.remedy)
    log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
    problem = as_unreadable(path, error)
    traceback = redacted("".join(format_exception(error)), path)
    return Failed(message=problem.message, remedy=problem.remedy, traceback=traceback)


def _unseen(error: OSError | UnreadableError, worker: "Worker") -> CannotOpen:
    reason = error.message if isinstance(error, UnreadableError) else error.strerror or str(error)
    return CannotOpen(host=socket.gethostname(), worker=worker.address, reason=reason.rstrip("."))


def _most_bytes(worker: "Worker") -> int | None:
    """Return what a thread of the worker may take for one file; None where there is no limit."""
    limit = worker.memory_manager.memory_limit
    if not limit:
        return None
    return max(0, int(limit * USED_SHARE) - host_limits.resident_bytes()) // worker.state.nthreads


class _Course:
    """How far one reading has come, told to who asked for it."""

    def __init__(self, worker: "Worker") -> None:
        self.worker = worker
        self._key: Any = worker.get_current_task()
        self._phase = ""
        self._told_at = 0.0

    def tell(self, told: ReadProgress) -> None:
        """Tell it, as often as it is worth it.

        Raises:
            CancelledError: nobody waits for it any more.
        """
        self._check()
        now = time.monotonic()
        if told.phase == self._phase and now - self._told_at < TELL_SECONDS:
            return
        self._phase, self._told_at = told.phase, now
        self.worker.log_event(TOPIC, {"key": self._key, "told": asdict(told)})

    def _check(self) -> None:
        task = self.worker.state.tasks.get(self._key)
        if task is None or task.state == "cancelled":
            msg = "the reading was cancelled"
            raise CancelledError(msg)
