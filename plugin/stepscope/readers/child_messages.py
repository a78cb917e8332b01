"""What a reader's process says to the process that asked it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepscope.base.errors import UnreadableError

if TYPE_CHECKING:
    from stepscope.readers.trace_transfer import PackedTrace


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """The order has come; whatever happens from here on is the file's doing."""


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A module had something to say."""

    logger: str
    level: int
    message: str


@dataclass(frozen=True, kw_only=True)
class Done:
    """The order is carried out."""

    trace: "PackedTrace | None"
    prepared: Any


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The file cannot be used; the process ends now."""

    problem: UnreadableError
    is_memory: bool
    """All the memory that it was given was not enough."""
    traceback: str = ""
    """Where it was raised, if nobody foresaw it."""


class RemoteError(Exception):
    """What was raised in another process, as it was told there."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"
