"""What is known of one file: a single value, replaced as a whole when more is known."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepscope.discover import TraceFile
from stepscope.readers.orders import Told
from stepscope.readers.pace import Clock
from stepscope.report import Problem
from stepscope.storage import FileStamp

if TYPE_CHECKING:
    from stepscope.advice import RecordingAdvice
    from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Queued:
    """Found, not read yet."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Being read."""

    told: Told = field(default_factory=Told)
    clock: Clock = field(default_factory=lambda: Clock(began=0.0), compare=False)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Read."""

    trace: "Trace"


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """Was read, and let go to bound memory; it is read again when asked for."""


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The user has ended its reading; it is read when that is asked for."""


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """Cannot be used, and why."""

    problem: Problem


State = Queued | Reading | Ready | Dropped | Cancelled | Unreadable


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is remembered of a file once read, whether its trace is kept or not."""

    rank: int | None
    is_synthetic: bool
    events: int
    advice: "RecordingAdvice | None" = None
    """What was said of it: small beside the trace, and what a run's page asks of every file."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file and what is known of it."""

    file: TraceFile
    stamp: FileStamp
    state: State
    facts: Facts | None = None
