"""State of one trace file: a single value, replaced as a whole on every change."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepscope.base.report import Problem
from stepscope.readers.eta import Clock
from stepscope.readers.requests import ReadProgress
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.advice import TraceAdvice
    from stepscope.model.trace import Trace
    from stepscope.summaries.summary import Summary


@dataclass(frozen=True, kw_only=True)
class Queued:
    """Listed, not read yet."""


@dataclass(frozen=True, kw_only=True)
class Growing:
    """Still being written by the profiler; it is read once it stops changing."""

    due_at: float = field(default=0.0, compare=False)
    """Time of reading, unless the file changes before, in `monotonic` seconds."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Being read."""

    progress: ReadProgress = field(default_factory=ReadProgress)
    clock: Clock = field(default_factory=lambda: Clock(began=0.0), compare=False)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Read, with its events in memory."""

    trace: "Trace"


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """Read, without its events in memory: they are read again on request."""


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The user cancelled the reading; the file is read on request."""


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """Cannot be read."""

    problem: Problem


State = Queued | Growing | Reading | Ready | Summarised | Cancelled | Unreadable


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Results of reading a file, which remain when its events are released."""

    rank: int | None
    is_synthetic: bool
    events: int
    summary: "Summary | None" = None

    @property
    def advice(self) -> "TraceAdvice | None":
        """Advice on this file alone."""
        return self.summary.advice if self.summary is not None else None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One trace file with its state."""

    file: TraceFile
    stamp: FileStamp
    state: State
    facts: Facts | None = None
    seen_at: float = field(default=0.0, compare=False)
    """Time at which `stamp` was first observed, in `monotonic` seconds."""
    cut_off_count: int = 0
    """Number of readings that found the file incomplete while it was being written."""


def facts_of(summary: "Summary") -> Facts:
    """Return the facts in a summary."""
    worker = summary.advice.worker
    return Facts(
        rank=worker.rank,
        is_synthetic=worker.synthetic,
        events=summary.events,
        summary=summary,
    )
