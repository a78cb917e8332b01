"""What a reader is asked to do, what it tells meanwhile, and what it answers."""

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
"""`waiting` is for memory that other files take, or for a worker of a cluster."""


class CancelledError(StepscopeError):
    """The user has ended the reading of a file."""


@dataclass(frozen=True, kw_only=True)
class ReadProgress:
    """How far a reading has come."""

    phase: Phase = "reading"
    bytes_done: int = 0
    bytes_total: int = 0
    events: int = 0


OnProgress = Callable[[ReadProgress], None]


Step = tuple[Phase, "Callable[[Trace], Any]"]


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """One file to read, and what is wanted of it."""

    file: TraceFile
    stamp: FileStamp | None = None
    """The file's size and time of change, where they are known."""
    steps: "tuple[Step, ...]" = ()
    """What to work out of the recording, such as its advice, by phase. Each is a function of a
    module, since it is called by its name in another process."""
    returns_trace: bool = True
    """Whether the trace itself is wanted, too."""
    cache: CacheSettings = field(default_factory=CacheSettings)
    memory_bytes: int | None = None
    """More than that it may not take."""


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    """What a file gave."""

    trace: "Trace | None" = None
    prepared: Any = None
    """What the last of `Order.steps` gave."""


class Stop:
    """Lets one thread end what another one reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self.is_set = False

    def set(self) -> None:
        """End the reading: at once, or as soon as it looks."""
        with self._lock:
            self.is_set = True
            for action in self._actions:
                action()

    def check(self) -> None:
        """Go on only where nothing has ended the reading.

        Raises:
            CancelledError: it was ended.
        """
        if self.is_set:
            msg = "the reading was cancelled"
            raise CancelledError(msg)

    @contextmanager
    def calls(self, action: Callable[[], None]) -> Iterator[None]:
        """Have `set` call this within the block; it must be quick, and may come at its start."""
        with self._lock:
            self._actions.append(action)
            if self.is_set:
                action()
        try:
            yield
        finally:
            with self._lock:
                self._actions.remove(action)
