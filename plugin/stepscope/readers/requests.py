"""Requests to readers, their progress and their results."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from stepscope.base.config import CacheSettings
from stepscope.base.errors import StepscopeError
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.model.trace import Trace

Phase = Literal["waiting", "reading", "analysing", "advising"]
"""`waiting` means for memory that other files use, or for a worker of a cluster."""


class CancelledError(StepscopeError):
    """The reading of a file was cancelled."""


@dataclass(frozen=True, kw_only=True)
class ReadProgress:
    """Progress of one reading."""

    phase: Phase = "reading"
    bytes_done: int = 0
    bytes_total: int = 0
    events: int = 0


OnProgress = Callable[[ReadProgress], None]
Step = tuple[Phase, "Callable[[Trace], Any]"]
"""A function of a trace, and the phase reported while it runs. It must be a module-level function,
since another process calls it by name.
"""


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """One file to read, and the work to do on its trace."""

    file: TraceFile
    stamp: FileStamp | None = None
    """The file's size and modification time, if known."""
    steps: "tuple[Step, ...]" = ()
    returns_trace: bool = True
    """Whether the result includes the trace itself."""
    cache: CacheSettings = field(default_factory=CacheSettings)
    memory_bytes: int | None = None
    """Limit of the memory for the reading."""

    @property
    def size_bytes(self) -> int:
        """The file's size; 0 if unknown."""
        return self.stamp.size_bytes if self.stamp else 0


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    """Result of a request."""

    trace: "Trace | None" = None
    prepared: Any = None
    """Result of the last of `ReadRequest.steps`."""


class Stop:
    """Lets one thread cancel the reading of another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self.is_set = False

    def set(self) -> None:
        """Cancel the reading: at once, or at its next check."""
        with self._lock:
            self.is_set = True
            for action in self._actions:
                action()

    def check(self) -> None:
        """Raise if the reading was cancelled.

        Raises:
            CancelledError: The reading was cancelled.
        """
        if self.is_set:
            msg = "the reading was cancelled"
            raise CancelledError(msg)

    @contextmanager
    def calls(self, action: Callable[[], None]) -> Iterator[None]:
        """Make `set` call a quick action within the block; call it at once if already set."""
        with self._lock:
            self._actions.append(action)
            if self.is_set:
                action()
        try:
            yield
        finally:
            with self._lock:
                self._actions.remove(action)
