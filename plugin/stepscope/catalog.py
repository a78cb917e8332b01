"""Which runs exist, and what is known of each file now; nothing here ever waits or hangs.

A thread looks through the log directories; readers turn files into traces in the background, and
what they and the recordings that are kept take of memory stays within one budget. Everything heavy
is imported when the first file is read, so that TensorBoard starts as fast with us as without.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from stepscope import discover
from stepscope.addresses import shown
from stepscope.config import Settings
from stepscope.discover import TraceFile
from stepscope.entries import (
    Cancelled,
    Dropped,
    Entry,
    Facts,
    Queued,
    Reading,
    Ready,
    State,
    Unreadable,
)
from stepscope.errors import NotFoundError, UnreadableError, in_one_line, unforeseen
from stepscope.kept import Kept
from stepscope.log_directories import LogDirectory, stamped, why_empty
from stepscope.readers.orders import Answer, CancelledError, Order, Step, Stop, Told
from stepscope.readers.pace import Clock, Pace
from stepscope.readers.pool import Reader, Readers
from stepscope.readers.room import Room
from stepscope.readers.tasks import analyse
from stepscope.readers.threads import DaemonThreads
from stepscope.report import Problem
from stepscope.storage import FileStamp

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings, RecordingAdvice

log = logging.getLogger(__name__)

FRESH_SECONDS = 2.0
"""A look through the folders younger than this is not repeated on demand."""
RESTS_A_LOOK = 10
"""A look that takes a second is followed by ten of rest: to list remote folders has its price."""
KEPT_SHARE = 0.5
"""Of the memory that may be used, what recordings take that nobody looks at just now."""


class Executor(Protocol):
    """Where reading happens."""

    def submit(self, job: Callable[[], None], /) -> object:
        """Run the job some time soon, and return at once."""


class Catalog:
    """The files under some log directories, read in the background, each once."""

    def __init__(  # noqa: PLR0913 (each can be another in a test)
        self,
        directories: Iterable[LogDirectory],
        *,
        settings: Settings,
        executor: Executor | None = None,
        reader: Reader | None = None,
        prepare: "Callable[..., RecordingAdvice] | None" = None,
        advice: "AdviceSettings | None" = None,
    ) -> None:
        """`prepare` does work ahead of questions: after a file is read, before it is `Ready`.

        It is given the trace and, where there is `advice`, the settings for its run by name. It
        returns the file's advice, which is kept when the trace is dropped. `reader` is where files
        are read: in processes of their own, where it is not said.
        """
        self.directories = tuple(directories)
        self.pace = Pace()
        self._settings = settings
        self._executor: Executor = executor or DaemonThreads(settings.jobs)
        self._room = Room(settings.memory_bytes, self.let_go)
        self._reader = reader or Readers(self._room)
        self._prepare = prepare
        self.advice = advice
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._stops: dict[str, Stop] = {}
        self._kept = Kept()
        self._problems: tuple[Problem, ...] = ()
        self._asked_for: dict[str, float] = {}
        self._is_reading = False
        self._scanned_at: float | None = None
        self._rest_seconds = FRESH_SECONDS
        self._found: dict[LogDirectory, list[TraceFile]] = {}
        self._look_again = threading.Event()

    def watch(self) -> None:
        """Look through the directories now and every few seconds, on a thread of our own."""
        threading.Thread(target=self._watch, name="stepscope-scan", daemon=True).start()

    def start_reading(self) -> None:
        """Read what was found, and from now on what will be."""
        with self._lock:
            if self._is_reading:
                return
            self._is_reading = True
            waiting = [entry for entry in self._entries.values() if entry.state == Queued()]
        for _ in waiting:
            self._executor.submit(self._read_next)

    @property
    def has_traces(self) -> bool:
        """Whether any trace file was found; costs nothing to ask."""
        return bool(self._entries)

    @property
    def is_scanning(self) -> bool:
        """Whether the first look through the directories is still going on."""
        return self._scanned_at is None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Log directories that cannot be looked through."""
        return self._problems

    def entries(self) -> tuple[Entry, ...]:
        """Return what is known of each file now, by run, worker and time."""
        with self._lock:
            return tuple(self._entries.values())

    def queue(self) -> tuple[str, ...]:
        """Return the ids of the files that wait, in the order in which they will be read."""
        with self._lock:
            return tuple(entry.file.id for entry in self._waiting())

    def look_again(self) -> None:
        """Have the directories looked through soon, unless that was done a moment ago."""
        if self._scanned_at is not None and monotonic() - self._scanned_at > self._rest_seconds:
            self._look_again.set()

    def recording(self, identity: str) -> Entry:
        """Return what is known of a file now; it and its run go before all others from here on.

        Raises:
            NotFoundError: no file has that id.
        """
        with self._lock:
            self._want(self._entry(identity))
            self._shrink(int(self._settings.memory_bytes * KEPT_SHARE))
            return self._entries[identity]

    def cancel(self, identity: str) -> None:
        """Do not read a file, or stop reading it; one that was read stays as it is.

        Raises:
            NotFoundError: no file has that id.
        """
        with self._lock:
            entry = self._entry(identity)
            if isinstance(entry.state, Queued | Reading):
                self._entries[identity] = replace(entry, state=Cancelled())
        self._stop(identity)

    def read_again(self, identity: str) -> None:
        """Read a file whose reading was cancelled or failed; it goes before all others.

        Raises:
            NotFoundError: no file has that id.
        """
        with self._lock:
            entry = self._entry(identity)
            self._want(entry)
            if isinstance(entry.state, Cancelled | Unreadable):
                self._enqueue(entry)

    def run(self, identity: str) -> tuple[Entry, ...]:
        """Return what is known of a run's files now; they go before all others from here on.

        What was dropped of them stays so, since a run may be larger than the bound: what is asked
        of a whole run is its advice, and that is kept.

        Raises:
            NotFoundError: no run has that id.
        """
        with self._lock:
            own = [entry for entry in self._entries.values() if entry.file.run_id == identity]
            if not own:
                msg = f"no run has the id {identity!r}: it may have been moved or deleted"
                raise NotFoundError(msg)
            self._asked_for[identity] = monotonic()
            self.start_reading()
            return tuple(own)

    def let_go(self, missing_bytes: int) -> None:
        """Make room for a file that does not fit beside what is kept."""
        with self._lock:
            self._shrink(self._room.kept_bytes - missing_bytes)

    def _steps(self, run: str) -> tuple[Step, ...]:
        """Return what is worked out of a run's recordings when they are read."""
        if self._prepare is None:
            return ()
        task = self._prepare
        if self.advice is not None:
            task = partial(task, settings=self.advice.of_run(run))
        return (("analysing", analyse), ("advising", task))

    def scan(self) -> None:
        """Look through the directories once: new files are queued, changed ones read again."""
        begun_at = monotonic()
        problems = [problem for each in self.directories for problem in self._look_through(each)]
        files = [file for each in self.directories for file in self._found.get(each, ())]
        self._adopt(stamped(discover.arranged(files)))
        self._problems = tuple(problems)
        self._scanned_at = monotonic()
        self._rest_seconds = max(FRESH_SECONDS, RESTS_A_LOOK * (self._scanned_at - begun_at))

    def _look_through(self, directory: LogDirectory) -> list[Problem]:
        """Note what is in a directory; of one that does not answer now, what was found stays."""
        try:
            found = discover.in_folder(directory.path, directory.name)
            self._found[directory] = found
            return [] if found else why_empty(directory.path)
        except UnreadableError as error:
            return [_as_problem(error)]

    def _watch(self) -> None:
        while True:
            try:
                self.scan()
            except Exception as error:  # the next look may go better; a dead thread finds nothing
                log.warning("looking for traces failed: %s", in_one_line(error))
                self._scanned_at = monotonic()
            self._look_again.wait(timeout=max(self._settings.rescan_seconds, self._rest_seconds))
            self._look_again.clear()

    def _adopt(self, found: Iterable[tuple[TraceFile, FileStamp]]) -> None:
        entries: dict[str, Entry] = {}
        fresh_count = 0
        with self._lock:
            for file, stamp in found:
                known = self._entries.get(file.id)
                is_fresh = known is None or _is_stale(known, stamp)
                fresh_count += is_fresh
                if known is None or is_fresh:
                    entries[file.id] = Entry(file=file, stamp=stamp, state=Queued())
                else:
                    entries[file.id] = replace(known, file=file)
            self._entries = entries
            is_reading = self._is_reading
            gone = [identity for identity in self._stops if identity not in entries]
        for identity in gone:
            self._stop(identity)
        for _ in range(fresh_count if is_reading else 0):
            self._executor.submit(self._read_next)

    def _entry(self, identity: str) -> Entry:
        entry = self._entries.get(identity)
        if entry is None:
            msg = f"no trace has the id {identity!r}: it may have been moved or deleted"
            raise NotFoundError(msg)
        return entry

    def _stop(self, identity: str) -> None:
        """End the reading of a file, if there is one; what it still tells is not heard."""
        with self._lock:
            stop = self._stops.pop(identity, None)
        if stop is not None:
            stop.set()

    def _want(self, entry: Entry) -> None:
        self._asked_for[entry.file.run_id] = self._asked_for[entry.file.id] = monotonic()
        self.start_reading()
        if isinstance(entry.state, Dropped):
            self._enqueue(entry)

    def _enqueue(self, entry: Entry) -> None:
        self._entries[entry.file.id] = replace(entry, state=Queued())
        self._executor.submit(self._read_next)

    def _last_asked_for(self, entry: Entry) -> tuple[float, float]:
        """Return when its run was asked for, and when it was itself."""
        asked_for = self._asked_for.get
        return asked_for(entry.file.run_id, 0.0), asked_for(entry.file.id, 0.0)

    def _eagerness(self, entry: Entry) -> tuple[tuple[float, float], int]:
        """Return what is read first: what was asked for, then what was recorded last."""
        return self._last_asked_for(entry), entry.file.recorded_ns

    def _waiting(self) -> list[Entry]:
        waiting = [entry for entry in self._entries.values() if entry.state == Queued()]
        waiting.sort(key=self._eagerness, reverse=True)  # keeps the order of equals
        return waiting

    def _take_next(self) -> tuple[Entry, Stop] | None:
        with self._lock:
            if not (waiting := self._waiting()):
                return None
            entry, stop = waiting[0], Stop()
            told = Told(phase="waiting", bytes_total=entry.stamp.size_bytes)
            reading = Reading(told=told, clock=Clock(began=monotonic()))
            self._entries[entry.file.id] = replace(entry, state=reading)
            self._stops[entry.file.id] = stop
            return entry, stop

    def _read_next(self) -> None:
        taken = self._take_next()
        if taken is None:
            return
        entry, stop = taken
        state, facts = self._read(entry, stop)
        with self._lock:
            self._put(entry, stop, state, facts)
            if self._stops.get(entry.file.id) is stop:
                del self._stops[entry.file.id]
            self._shrink(int(self._settings.memory_bytes * KEPT_SHARE))

    def _read(self, entry: Entry, stop: Stop) -> tuple[State, Facts | None]:
        clock = Clock(began=monotonic())

        def tell(told: Told) -> None:
            nonlocal clock
            clock = clock.at(told.phase, monotonic())
            self._put(entry, stop, Reading(told=told, clock=clock), entry.facts)

        order = Order(
            file=entry.file,
            stamp=entry.stamp,
            steps=self._steps(entry.file.run),
            cache=self._settings.cache,
        )
        try:
            answer = self._reader.read(order, tell, stop)
        except CancelledError:
            return Cancelled(), entry.facts
        except Exception as error:  # one file must not end the reading of the others
            if not isinstance(error, UnreadableError):
                path = entry.file.path
                log.warning("reading %s failed: %s", shown(path), in_one_line(error, path))
            problem = unforeseen(entry.file.path, error)
            return Unreadable(problem=_as_problem(problem)), entry.facts
        self.pace.finished(clock, monotonic())
        return _read_state(answer)

    def _put(self, entry: Entry, stop: Stop, state: State, facts: Facts | None) -> None:
        """Replace what is known of a file, unless its reading has been ended in the meantime."""
        with self._lock:
            if self._stops.get(entry.file.id) is stop:
                now = self._entries[entry.file.id]
                self._entries[entry.file.id] = replace(now, state=state, facts=facts)

    def _shrink(self, bound_bytes: int) -> None:
        """Let go of what was asked for least lately: of other runs, then of the latest run itself.

        A run of many ranks is bounded, too; what was asked for last stays.
        """
        kept = [entry for entry in self._entries.values() if isinstance(entry.state, Ready)]
        # Among those that nobody asked for, the later in the list goes first.
        kept.reverse()
        kept.sort(key=self._last_asked_for)
        traces = [entry.state.trace for entry in kept if isinstance(entry.state, Ready)]
        gone, left_bytes = self._kept.beyond(traces, bound_bytes)
        for trace in gone:
            self._entries[trace.id] = replace(self._entries[trace.id], state=Dropped())
        self._room.keep(left_bytes)


def _is_stale(entry: Entry, stamp: FileStamp) -> bool:
    """A file that changes while it is read is read again after that."""
    return entry.stamp != stamp and not isinstance(entry.state, Reading)


def _as_problem(error: UnreadableError) -> Problem:
    return Problem(path=error.path, message=error.message, remedy=error.remedy)


def _read_state(answer: Answer) -> tuple[State, Facts | None]:
    trace = answer.trace
    if trace is None:
        raise ValueError(answer)
    facts = Facts(
        rank=trace.rank,
        is_synthetic=trace.is_synthetic,
        events=len(trace),
        advice=answer.prepared,
    )
    return Ready(trace=trace), facts
