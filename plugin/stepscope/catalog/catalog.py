"""Which runs exist, and what is known of each file now; nothing here ever waits or hangs.

A thread looks through the log directories (`looking.py`); readers turn files into traces and
summaries in the background, and what they and the recordings that are kept take of memory stays
within one budget. Everything heavy is imported when the first file is read, so that TensorBoard
starts as fast with us as without.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from stepscope import storage
from stepscope.base.config import Settings
from stepscope.base.errors import UnreadableError
from stepscope.base.report import Problem
from stepscope.catalog import write_detection
from stepscope.catalog.directory_scan import DirectoryScan
from stepscope.catalog.file_index import FileIndex
from stepscope.catalog.file_reading import FileReading, Task
from stepscope.catalog.file_state import (
    Cancelled,
    Entry,
    Growing,
    Queued,
    Reading,
    Ready,
    Summarised,
    Unreadable,
    facts_of,
)
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.rescan import Rescan
from stepscope.catalog.summary_cache import Stamped, SummaryCache, SummaryStore
from stepscope.catalog.trace_cache import FEW_FILES, RETAINED_FRACTION, TraceCache, all_fit
from stepscope.readers.daemon_threads import DaemonThreads
from stepscope.readers.eta import Clock, EtaEstimator
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.pool import Reader, ReaderPool
from stepscope.readers.requests import ReadProgress, Stop
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.summaries.summary import Summary

log = logging.getLogger(__name__)


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
        prepare: "Callable[..., Summary] | None" = None,
        advice: "AdviceSettings | None" = None,
        store: Callable[[], SummaryStore] | None = None,
        summary_reader: Reader | None = None,
        summary_jobs: int = 1,
    ) -> None:
        """`prepare` does work ahead of questions: after a file is read, before it is `Ready`.

        It is given the trace and, where there is `advice`, the settings for its run by name. It
        returns the file's summary, which is kept when the trace is dropped. `reader` is where files
        are read: in processes of their own, where it is not said.

        `store` opens where summaries are kept from one start to the next. `summary_reader` reads
        what is wanted for its summary only, `summary_jobs` files at once: a cluster.
        """
        self.directories = tuple(directories)
        self.settings = settings
        self.advice = advice
        self._executor: Executor = executor or DaemonThreads(settings.jobs)
        self._room = MemoryBudget(settings.memory_bytes, self.release_memory)
        reader = reader or ReaderPool(self._room)
        self._reading = FileReading(
            reader=reader,
            summary_reader=summary_reader or reader,
            prepare=prepare,
            advice=advice,
            cache=settings.cache,
        )
        self._has_cluster = summary_reader is not None
        self._summary_executor = (
            DaemonThreads(summary_jobs) if self._has_cluster else self._executor
        )
        self._lock = threading.RLock()
        self._files = FileIndex()
        self._remembered = SummaryCache(store, self._files.count_of_run)
        self._stops: dict[str, Stop] = {}
        self._kept = TraceCache()
        self._beside_bytes = 0
        self._is_reading = False
        self._watch = Rescan(
            DirectoryScan(self.directories, self._adopt),
            pause_seconds=settings.rescan_seconds,
            now_and_then=self._now_and_then,
        )

    def watch(self) -> None:
        """Look through the directories now and every few seconds, on a thread of our own."""
        self._watch.start()

    def close(self) -> None:
        """Look for nothing any more, and have kept what is known."""
        self._watch.end()
        self._keep_late()
        self._remembered.flush()

    def start_reading(self) -> None:
        """Read what was found, and from now on what will be."""
        with self._lock:
            if self._is_reading:
                return
            self._is_reading = True
            waiting = self._files.waiting()
            self._files.hold(entry.file.id for entry in waiting)
        self._begin(waiting)

    @property
    def eta(self) -> EtaEstimator:
        """How long reading takes, from what was measured so far."""
        return self._reading.pace

    @property
    def has_traces(self) -> bool:
        """Whether any trace file was found; costs nothing to ask."""
        return bool(len(self._files))

    @property
    def is_scanning(self) -> bool:
        """Whether the first look through the directories is still going on."""
        return not self._watch.has_looked

    @property
    def directory_scan(self) -> DirectoryScan:
        """How far the look through the directories is, and what is wrong with them."""
        return self._watch.directory_scan

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Log directories that cannot be looked through."""
        return self.directory_scan.problems

    def entries(self) -> tuple[Entry, ...]:
        """Return what is known of each file now, by run, worker and time."""
        with self._lock:
            return tuple(self._files)

    def queue(self) -> tuple[str, ...]:
        """Return the ids of the files that wait, in the order in which they will be read."""
        with self._lock:
            return tuple(entry.file.id for entry in self._files.waiting())

    def state_key(self) -> tuple[object, ...] | None:
        """Return what tells how things are now from how they were; None while a file is read.

        Of a file that is read, the progress changes all the time.
        """
        with self._lock:
            if self._files.count(Reading):
                return None
            looking = self.directory_scan
            said = (looking.file_count, looking.is_cancelled, looking.problems)
            return self._files.version, self.is_scanning, *said

    def rescan_soon(self) -> None:
        """Have the directories looked through soon, unless that was done a moment ago."""
        self._watch.rescan_soon()

    def cancel_scan(self) -> None:
        """End the look through the directories; the next one is when that is asked for."""
        self.directory_scan.cancel()

    def rescan_now(self) -> None:
        """Have the directories looked through, although that was ended."""
        self._watch.rescan_now()

    def file(self, identity: str) -> Entry:
        """Return what is known of a file now; it and its run go before all others from here on.

        Raises:
            UnknownNameError: no file has that id.
        """
        with self._lock:
            self._want(self._files.of(identity))
            self._shrink(self._kept_bytes)
            return self._files.of(identity)

    def cancel(self, identity: str) -> None:
        """Do not read a file, or stop reading it; one that was read stays as it is.

        Raises:
            UnknownNameError: no file has that id.
        """
        with self._lock:
            entry = self._files.of(identity)
            if isinstance(entry.state, Queued | Growing | Reading):
                self._files.put(replace(entry, state=Cancelled()))
        self._stop(identity)

    def read_again(self, identity: str) -> None:
        """Read a file whose reading was cancelled or failed; it goes before all others.

        Raises:
            UnknownNameError: no file has that id.
        """
        with self._lock:
            entry = self._files.of(identity)
            self._want(entry)
            if isinstance(entry.state, Cancelled | Unreadable | Growing):
                self._enqueue(entry)

    def read_run_again(self, identity: str) -> None:
        """Read the files of a run whose reading was cancelled or failed; they go before all others.

        What is read of each is what a run needs: its summary, where it has many files.

        Raises:
            UnknownNameError: no run has that id.
        """
        with self._lock:
            own = self._files.of_run(identity)
            self._files.ask_for(identity)
            self.start_reading()
            for entry in own:
                if isinstance(entry.state, Cancelled | Unreadable):
                    self._enqueue(entry)

    def run(self, identity: str) -> tuple[Entry, ...]:
        """Return what is known of a run's files now; they go before all others from here on.

        What was dropped of them stays so, since a run may be larger than the bound: what is asked
        of a whole run is its advice, and that is kept.

        Raises:
            UnknownNameError: no run has that id.
        """
        with self._lock:
            own = self._files.of_run(identity)
            self._files.ask_for(identity)
            self.start_reading()
            return own

    def with_samples(self, entries: Iterable[Entry]) -> "Mapping[str, Summary]":
        """Return the summaries of files with what is compared of them, as far as they are kept."""
        return self._remembered.find(entries, with_samples=True)

    def release_memory(self, missing_bytes: int) -> None:
        """Make room for a file that does not fit beside what is kept."""
        with self._lock:
            self._shrink(self._room.retained_bytes - self._beside_bytes - missing_bytes)

    def reserve_memory(self, bytes_: int) -> None:
        """Note how much memory others take of what recordings say for their runs."""
        with self._lock:
            self._room.set_retained(self._room.retained_bytes - self._beside_bytes + bytes_)
            self._beside_bytes = bytes_

    def scan(self) -> None:
        """Look through the directories once: new files are queued, changed ones read again."""
        self._watch.scan()

    def look_at_growing(self) -> None:
        """Queue what has settled of the files that somebody still wrote."""
        for entry in self._growing():
            with suppress(OSError, UnreadableError):  # the next look through the folders tells
                self._settle(entry, storage.stamp(entry.file.path))

    def _growing(self) -> list[Entry]:
        with self._lock:
            if not self._files.count(Growing):
                return []
            return [entry for entry in self._files if isinstance(entry.state, Growing)]

    def _settle(self, entry: Entry, stamp: FileStamp) -> None:
        """Queue a file that was still written, unless it has changed since the last look."""
        now = monotonic()
        with self._lock:
            if self._files.get(entry.file.id) is not entry:
                return
            if stamp != entry.stamp:
                due_at = now + write_detection.waits_s(stamp, now, entry.cut_off_count)
                state = Growing(due_at=due_at)
                self._files.put(replace(entry, stamp=stamp, seen_at=now, state=state))
            elif isinstance(entry.state, Growing) and entry.state.due_at <= now:
                self._enqueue(entry)

    def _now_and_then(self) -> bool:
        """Do what is due between two looks; tell whether it is due again in a moment."""
        self.look_at_growing()
        self._keep_late()
        self._remembered.flush()
        return bool(self._growing())

    def _keep_late(self) -> None:
        """Have kept what was read before its run had as many files as it has now."""
        for entry in self.entries() if self._remembered.is_open else ():
            kept = self._remembered.kept(entry)
            with self._lock:
                if kept is not entry and self._files.get(entry.file.id) is entry:
                    self._files.put(kept)

    def _adopt(self, found: Sequence[Stamped]) -> None:
        entries: dict[str, Entry] = {}
        fresh: list[Entry] = []
        now = monotonic()
        with self._lock:
            for file, stamp in found:
                known = self._files.get(file.id)
                if known is None or _is_stale(known, stamp):
                    entries[file.id] = _found(file, stamp, known, now)
                    fresh.append(entries[file.id])
                elif known.file == file:
                    entries[file.id] = known
                else:
                    entries[file.id] = replace(known, file=file)
            if fresh or list(entries) != [entry.file.id for entry in self._files]:
                self._files.replace_all(entries)
            is_reading = self._is_reading
            if is_reading:
                self._files.hold(entry.file.id for entry in fresh)
            gone = [identity for identity in self._stops if identity not in entries]
        for identity in gone:
            self._stop(identity)
        if is_reading:
            self._begin(fresh)

    # Reading

    def _begin(self, entries: Sequence[Entry]) -> None:
        """Have files read; first it is looked up what is known of them from another start."""
        if entries and self._remembered.is_anywhere:
            self._executor.submit(lambda: self._recall(entries))
        else:
            self._read_those(entries)

    def _recall(self, entries: Sequence[Entry]) -> None:
        summaries = self._remembered.find(entries)
        with self._lock:
            for entry in entries:
                summary = summaries.get(entry.file.id)
                if summary is None or self._files.get(entry.file.id) != entry:
                    continue
                is_wanted = self._files.was_asked_for(entry.file.id)
                state = Queued() if is_wanted else Summarised()
                self._files.put(replace(entry, state=state, facts=facts_of(summary)))
        self._read_those(entries)

    def _read_those(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            self._files.release(entry.file.id for entry in entries)
            now = [self._files.get(entry.file.id) for entry in entries]
            waiting = [entry for entry in now if entry and isinstance(entry.state, Queued)]
        for entry in waiting:
            self._submit(entry)

    def _submit(self, entry: Entry) -> None:
        is_whole = not self._has_cluster or self._is_whole(entry)
        executor = self._executor if is_whole else self._summary_executor
        executor.submit(partial(self._read_next, is_whole=is_whole))

    def _is_whole(self, entry: Entry) -> bool:
        """Tell whether a file's events are wanted, and not its summary alone.

        They are where somebody asked for that very recording, and before anybody did: of a run's
        first, and of all files of a small run.
        """
        if self._reading.prepare is None or self._files.was_asked_for(entry.file.id):
            return True
        if self._has_cluster:
            return False
        run = entry.file.run_id
        is_first = self._files.first_of_run(run) == entry.file.id
        if is_first or self._files.count_of_run(run) > FEW_FILES:
            return is_first
        files = [(each.file, each.stamp) for each in self._files.of_run(run)]
        return all_fit(files, self._kept_bytes)

    @property
    def _kept_bytes(self) -> int:
        return int(self.settings.memory_bytes * RETAINED_FRACTION)

    def _want(self, entry: Entry) -> None:
        self._files.ask_for(entry.file.run_id, entry.file.id)
        self.start_reading()
        if isinstance(entry.state, Summarised):
            self._enqueue(entry)
        elif isinstance(entry.state, Queued) and self._has_cluster:
            self._submit(entry)  # here, and no longer elsewhere

    def _enqueue(self, entry: Entry) -> None:
        self._files.put(replace(entry, state=Queued()))
        if self._is_reading:
            self._submit(entry)

    def _stop(self, identity: str) -> None:
        """End the reading of a file, if there is one; what it still tells is not heard."""
        with self._lock:
            stop = self._stops.pop(identity, None)
        if stop is not None:
            stop.set()

    def _take_next(self, *, is_whole: bool) -> Task | None:
        with self._lock:
            entry = self._files.next_waiting(
                lambda each: not self._has_cluster or self._is_whole(each) == is_whole
            )
            if entry is None:
                return None
            task = Task(entry=entry, stop=Stop(), is_whole=self._is_whole(entry))
            told = ReadProgress(phase="waiting", bytes_total=entry.stamp.size_bytes)
            reading = Reading(progress=told, clock=Clock(began=monotonic()))
            self._files.put(replace(entry, state=reading))
            self._stops[entry.file.id] = task.stop
            return task

    def _read_next(self, *, is_whole: bool) -> None:
        task = self._take_next(is_whole=is_whole)
        if task is None:
            return
        entry = self._remembered.kept(
            self._reading.read(task, lambda entry: self._put(task, entry))
        )
        with self._lock:
            self._put(task, entry)
            if self._stops.get(entry.file.id) is task.stop:
                del self._stops[entry.file.id]
            self._shrink(self._kept_bytes)
            is_idle = not self._files.count(Queued, Reading)
        if is_idle:
            self._remembered.flush()

    def _put(self, task: Task, entry: Entry) -> None:
        """Replace what is known of a file, unless its reading has been ended in the meantime."""
        with self._lock:
            known = self._files.get(entry.file.id)  # it may have gone just now
            if known is not None and self._stops.get(entry.file.id) is task.stop:
                # Its run may have got another name.
                self._files.put(replace(entry, file=known.file))

    def _shrink(self, bound_bytes: int) -> None:
        """Let go of what was asked for least lately: of other runs, then of the latest run itself.

        A run of many ranks is bounded, too; what was asked for last stays.
        """
        kept = [entry for entry in self._files if isinstance(entry.state, Ready)]
        # Among those that nobody asked for, the later in the list goes first.
        kept.reverse()
        kept.sort(key=self._files.last_asked_for)
        traces = [entry.state.trace for entry in kept if isinstance(entry.state, Ready)]
        gone, left_bytes = self._kept.beyond(traces, bound_bytes)
        for trace in gone:
            self._files.put(replace(self._files.of(trace.id), state=Summarised()))
        self._room.set_retained(left_bytes + self._beside_bytes)


def _found(file: TraceFile, stamp: FileStamp, known: Entry | None, now: float) -> Entry:
    """Return what is known of a file that is new, or has changed."""
    count = known.cut_off_count if known is not None else 0
    left_s = write_detection.waits_s(stamp, now, count)
    state = Growing(due_at=now + left_s) if left_s else Queued()
    return Entry(file=file, stamp=stamp, state=state, seen_at=now, cut_off_count=count)


def _is_stale(entry: Entry, stamp: FileStamp) -> bool:
    """A file that changes while it is read is read again after that."""
    return entry.stamp != stamp and not isinstance(entry.state, Reading)
