"""Replies of a cluster's worker, and time limits."""

from dataclasses import dataclass
from typing import Any

from stepscope.base.errors import UnreadableError, UsageError

TOPIC = "stepscope"
"""Dask's topic for progress: one for all workers, since the scheduler bounds its size."""
PACKAGE = "stepscope"


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Time limits."""

    connect_seconds: float = 10.0
    """For the scheduler, at the start."""
    again_seconds: float = 10.0
    """For the same scheduler, after the connection was lost."""
    workers_seconds: float = 60.0
    """For a worker, at the start and after the last worker has left."""
    silent_seconds: float = 30.0
    """For a scheduler that does not respond."""
    look_seconds: float = 1.0
    """Between two checks of the workers."""


class NoClusterError(UsageError):
    """No cluster can read: a message, and a remedy."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy

    def of_file(self, path: str) -> UnreadableError:
        """Return the error as the problem of a file."""
        return UnreadableError(path, self.message, self.remedy)


@dataclass(frozen=True, kw_only=True)
class Done:
    """The request succeeded."""

    prepared: Any
    host: str
    worker: str
    size_bytes: int
    """The file's size on the worker."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The file cannot be read on any worker."""

    message: str
    remedy: str
    traceback: str = ""
    """Traceback of an unexpected error."""


@dataclass(frozen=True, kw_only=True)
class CannotOpen:
    """This worker cannot open the file; another may."""

    host: str
    worker: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class WrongVersion:
    """This worker runs another version of stepscope."""

    worker: str
    version: str


Result = Done | Failed | CannotOpen | WrongVersion
