"""Which runs exist, and what is known of each file now; nothing here ever waits or hangs.

A thread looks through the log directories; readers turn files into traces in the background. What
is known of a file is one value, `State`, swapped as a whole. Everything heavy is imported when the
first file is read, so that TensorBoard starts as fast with us as without.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from stepscope import addresses, discover, storage
from stepscope.config import Settings
from stepscope.discover import TraceFile
from stepscope.errors import NotFoundError, UnreadableError, in_one_line, unforeseen
from stepscope.report import Problem, RunReport
from stepscope.storage import FileStamp

if TYPE_CHECKING:
    from stepscope.trace import Trace

log = logging.getLogger(__name__)

FRESH_SECONDS = 2.0
"""A look through the folders younger than this is not repeated on demand."""
RESTS_A_LOOK = 10
"""A look that takes a second is followed by ten of rest: to list remote folders has its price."""


@dataclass(frozen=True, kw_only=True)
class Queued:
    """Found, not read yet."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Being read."""

    phase: str = "reading"
    bytes_done: int = 0
    bytes_total: int = 0
    events: int = 0


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Read."""

    trace: "Trace"


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """Was read, and let go to bound memory; it is read again when asked for."""


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """Cannot be used, and why."""

    problem: Problem


State = Queued | Reading | Ready | Dropped | Unreadable


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is remembered of a file once read, whether its trace is kept or not."""

    rank: int | None
    is_synthetic: bool
    events: int
    advice: RunReport | None = None
    """What was said of it: small beside the trace, and what a run's page asks of every file."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file and what is known of it."""

    file: TraceFile
    stamp: FileStamp
    state: State
    facts: Facts | None = None


@dataclass(frozen=True, kw_only=True)
class LogDirectory:
    """A folder to look through; `name` goes before its runs' names."""

    path: str
    name: str = ""


class Executor(Protocol):
    """Where reading happens."""

    def submit(self, job: Callable[[], None], /) -> object:
        """Run the job some time soon, and return at once."""


class DaemonThreads:
    """Runs jobs on threads that never keep the process alive: Ctrl-C ends it at once.

    `concurrent.futures` would finish every queued file first.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for number in range(count):
            name = f"stepscope-reader-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, job: Callable[[], None], /) -> None:
        """Run the job on the next thread that is free."""
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _no_preparation(trace: "Trace") -> None:
    """Nothing is worked out ahead of the first question, and no advice is kept."""


class Catalog:
    """The files under some log directories, read in the background, each once."""

    def __init__(
        self,
        directories: Iterable[LogDirectory],
        *,
        settings: Settings,
        executor: Executor | None = None,
        prepare: Callable[["Trace"], RunReport | None] = _no_preparation,
    ) -> None:
        """`prepare` does work ahead of questions: after a file is read, before it is `Ready`.

        It returns the file's advice, which is kept when the trace is dropped.
        """
        self.directories = tuple(directories)
        self._settings = settings
        self._executor: Executor = executor or DaemonThreads(settings.reader_count)
        self._prepare = prepare
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
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
            entry = self._entries.get(identity)
            if entry is None:
                msg = f"no trace has the id {identity!r}: it may have been moved or deleted"
                raise NotFoundError(msg)
            self._want(entry)
            return self._entries[identity]

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

    def scan(self) -> None:
        """Look through the directories once: new files are queued, changed ones read again."""
        begun_at = monotonic()
        problems = [problem for each in self.directories for problem in self._look_through(each)]
        files = [file for each in self.directories for file in self._found.get(each, ())]
        self._adopt(_stamped(discover.arranged(files)))
        self._problems = tuple(problems)
        self._scanned_at = monotonic()
        self._rest_seconds = max(FRESH_SECONDS, RESTS_A_LOOK * (self._scanned_at - begun_at))

    def _look_through(self, directory: LogDirectory) -> list[Problem]:
        """Note what is in a directory; of one that does not answer now, what was found stays."""
        try:
            found = discover.in_folder(directory.path, directory.name)
            self._found[directory] = found
            return [] if found else _absent(directory.path)
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
        for _ in range(fresh_count if is_reading else 0):
            self._executor.submit(self._read_next)

    def _want(self, entry: Entry) -> None:
        self._asked_for[entry.file.run_id] = self._asked_for[entry.file.id] = monotonic()
        if isinstance(entry.state, Dropped):
            self._entries[entry.file.id] = replace(entry, state=Queued())
            self._executor.submit(self._read_next)
        self.start_reading()

    def _last_asked_for(self, entry: Entry) -> tuple[float, float]:
        """Return when its run was asked for, and when it was itself."""
        asked_for = self._asked_for.get
        return asked_for(entry.file.run_id, 0.0), asked_for(entry.file.id, 0.0)

    def _eagerness(self, entry: Entry) -> tuple[tuple[float, float], int]:
        """Return what is read first: what was asked for, then what was recorded last."""
        return self._last_asked_for(entry), entry.file.recorded_ns

    def _take_next(self) -> Entry | None:
        with self._lock:
            waiting = [entry for entry in self._entries.values() if entry.state == Queued()]
            if not waiting:
                return None
            entry = max(waiting, key=self._eagerness)  # the first of equals
            taken = replace(entry, state=Reading(bytes_total=entry.stamp.size_bytes))
            self._entries[entry.file.id] = taken
            return taken

    def _read_next(self) -> None:
        entry = self._take_next()
        if entry is None:
            return
        state, facts = self._read(entry)
        self._put(entry, state, facts)
        if isinstance(state, Ready):
            self._drop_beyond_bound()

    def _read(self, entry: Entry) -> tuple[State, Facts | None]:
        # Imported here because it brings pandas, which TensorBoard's start should not wait for.
        from stepscope.read import read_trace

        def progress(bytes_done: int, bytes_total: int, events: int) -> None:
            now = Reading(bytes_done=bytes_done, bytes_total=bytes_total, events=events)
            self._put(entry, now, entry.facts)

        try:
            trace = read_trace(entry.file, progress)
            size = entry.stamp.size_bytes
            analysing = Reading(
                phase="analysing", bytes_done=size, bytes_total=size, events=len(trace)
            )
            self._put(entry, analysing, entry.facts)
            facts = _facts(trace, self._prepare(trace))
        except Exception as error:  # one file must not end the reading of the others
            if not isinstance(error, UnreadableError):
                path = addresses.shown(entry.file.path)
                log.warning("reading %s failed: %s", path, in_one_line(error))
            problem = unforeseen(entry.file.path, error)
            return Unreadable(problem=_as_problem(problem)), entry.facts
        return Ready(trace=trace), facts

    def _put(self, entry: Entry, state: State, facts: Facts | None) -> None:
        """Replace what is known of a file, unless it has gone, or changed, in the meantime."""
        with self._lock:
            now = self._entries.get(entry.file.id)
            if now is not None and now.stamp == entry.stamp:
                self._entries[entry.file.id] = replace(now, state=state, facts=facts)

    def _drop_beyond_bound(self) -> None:
        """Let go of recordings, those asked for least lately first, but never the latest.

        First of other runs, then of the latest run itself: a run of many ranks is bounded, too.
        """
        with self._lock:
            kept = [entry for entry in self._entries.values() if isinstance(entry.state, Ready)]
            events = sum(entry.facts.events for entry in kept if entry.facts)
            # Among those that nobody asked for, the later in the list goes first.
            kept.reverse()
            kept.sort(key=self._last_asked_for)
            for entry in kept[:-1]:
                if events <= self._settings.kept_events:
                    return
                events -= entry.facts.events if entry.facts else 0
                self._entries[entry.file.id] = replace(entry, state=Dropped())


def _stamped(files: Iterable[TraceFile]) -> list[tuple[TraceFile, FileStamp]]:
    stamped = []
    for file in files:
        try:
            stamped.append((file, file.listed or storage.stamp(file.path)))
        except (OSError, UnreadableError):  # it has gone since it was listed, or is a dead link
            log.info("%s cannot be looked at", addresses.shown(file.path))
    return stamped


def _is_stale(entry: Entry, stamp: FileStamp) -> bool:
    """A file that changes while it is read is read again after that."""
    return entry.stamp != stamp and not isinstance(entry.state, Reading)


def _absent(path: str) -> list[Problem]:
    if storage.is_folder(path):
        return []
    if _is_there(path):
        message, remedy = "This is a file, not a folder.", "Give the folder that holds it."
    else:
        message, remedy = "There is no such folder.", "Check the path; it is looked for again."
    return [Problem(path=addresses.shown(path), message=message, remedy=remedy)]


def _as_problem(error: UnreadableError) -> Problem:
    return Problem(path=error.path, message=error.message, remedy=error.remedy)


def _is_there(path: str) -> bool:
    try:
        return storage.exists(path)
    except OSError:
        return False


def _facts(trace: "Trace", advice: RunReport | None) -> Facts:
    return Facts(rank=trace.rank, is_synthetic=trace.is_synthetic, events=len(trace), advice=advice)
