"""What a cluster's worker answers, and how long one waits for what."""

from dataclasses import dataclass
from typing import Any

from stepscope.base.errors import UnreadableError, UsageError

TOPIC = "stepscope"
"""Under which workers tell how far they have come: one for all, which the scheduler bounds."""
PACKAGE = "stepscope"


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long is waited until something is given up."""

    connect_seconds: float = 10.0
    """For the scheduler at the start."""
    again_seconds: float = 10.0
    """For the same scheduler after the connection was lost."""
    workers_seconds: float = 60.0
    """For a worker, at the start and after the last one has gone."""
    silent_seconds: float = 30.0
    """For a scheduler that does not answer."""
    look_seconds: float = 1.0
    """Between two looks who is there."""


class NoClusterError(UsageError):
    """There is no cluster that could read: what is wrong, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy

    def of_file(self, path: str) -> UnreadableError:
        """Return it as the problem of a file that was to be read there."""
        return UnreadableError(path, self.message, self.remedy)


@dataclass(frozen=True, kw_only=True)
class Done:
    """The order is carried out."""

    prepared: Any
    host: str
    worker: str
    size_bytes: int
    """Of the file, as the worker sees it."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The file cannot be used, wherever it is read."""

    message: str
    remedy: str
    traceback: str = ""
    """Where it was raised, if nobody foresaw it."""


@dataclass(frozen=True, kw_only=True)
class CannotOpen:
    """This worker cannot open the file; another one may."""

    host: str
    worker: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class WrongVersion:
    """This worker runs another version than who asked."""

    worker: str
    version: str


Result = Done | Failed | CannotOpen | WrongVersion
