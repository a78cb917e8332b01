"""What is known of one file: a single value, replaced as a whole when more is known."""

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
    """Found, not read yet."""


@dataclass(frozen=True, kw_only=True)
class Growing:
    """Somebody still writes it; it is read when it has not changed for a while."""

    due_at: float = field(default=0.0, compare=False)
    """When it is read, unless it changes until then; by `monotonic`."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Being read."""

    progress: ReadProgress = field(default_factory=ReadProgress)
    clock: Clock = field(default_factory=lambda: Clock(began=0.0), compare=False)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Read."""

    trace: "Trace"


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """Its summary is there, its events are not: they are read when they are asked for."""


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The user has ended its reading; it is read when that is asked for."""


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """Cannot be used, and why."""

    problem: Problem


State = Queued | Growing | Reading | Ready | Summarised | Cancelled | Unreadable


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is remembered of a file once read, whether its trace is kept or not."""

    rank: int | None
    is_synthetic: bool
    events: int
    summary: "Summary | None" = None
    """What it says for its run: small beside the trace; None where nothing was worked out."""

    @property
    def advice(self) -> "TraceAdvice | None":
        """What was said of it."""
        return self.summary.advice if self.summary is not None else None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file and what is known of it."""

    file: TraceFile
    stamp: FileStamp
    state: State
    facts: Facts | None = None
    seen_at: float = field(default=0.0, compare=False)
    """When it was first seen to be as its stamp says; by `monotonic`."""
    cut_off_count: int = 0
    """How often it was read while somebody still wrote it."""


def facts_of(summary: "Summary") -> Facts:
    """Return what a summary says of its file."""
    worker = summary.advice.worker
    return Facts(
        rank=worker.rank,
        is_synthetic=worker.synthetic,
        events=summary.events,
        summary=summary,
    )
