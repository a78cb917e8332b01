"""Queue of files to read: schedules and performs their reading in the background, once per file."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from stepscope import storage
from stepscope.base.errors import UnreadableError, as_unreadable, in_one_line
from stepscope.base.urls import redacted
from stepscope.catalog import write_detection
from stepscope.catalog.file_index import FileIndex
from stepscope.catalog.file_state import (
    Cancelled,
    Entry,
    Facts,
    Growing,
    Queued,
    Reading,
    Ready,
    State,
    Summarised,
    Unreadable,
    facts_of,
)
from stepscope.catalog.log_directories import StampedFile, as_problem
from stepscope.catalog.options import CatalogOptions, Executor
from stepscope.catalog.summary_cache import SummaryCache
from stepscope.catalog.trace_cache import FEW_FILES, TraceCache, all_fit
from stepscope.readers.batch import DaemonThreads
from stepscope.readers.eta import Clock, EtaEstimator
from stepscope.readers.pool import Reader, ReaderPool
from stepscope.readers.requests import (
    CancelledError,
    ReadProgress,
    ReadRequest,
    ReadResult,
    Step,
    Stop,
)
from stepscope.readers.tasks import analyse, summarise

log = logging.getLogger(__name__)

SMALL_BYTES = 16 * 2**20
"""JSON size up to which a server reads files in its process, which delays its answers meanwhile."""


@dataclass(frozen=True, kw_only=True)
class ReadingTask:
    """One file that is being read."""

    entry: Entry
    stop: Stop
    needs_events: bool
    """Whether its events are needed, not only its summary."""


class FileReader:
    """Reads files, and measures how long that takes."""

    def __init__(self, reader: Reader, options: CatalogOptions) -> None:
        self._reader = reader
        self._options = options
        self.eta = EtaEstimator()

    def read(self, task: ReadingTask, on_progress: Callable[[Entry], None]) -> Entry:
        """Return a file's entry after its reading, successful or not."""
        return _unless_growing(self._read(task, on_progress))

    def _read(self, task: ReadingTask, on_progress: Callable[[Entry], None]) -> Entry:
        entry = task.entry
        clock = Clock(began=monotonic())

        def report(progress: ReadProgress) -> None:
            nonlocal clock
            clock = clock.at(progress.phase, monotonic())
            on_progress(replace(entry, state=Reading(progress=progress, clock=clock)))

        reader = self._reader
        if not task.needs_events and self._options.summary_reader is not None:
            reader = self._options.summary_reader
        try:
            result = reader.read(self._request(task), report, task.stop)
        except CancelledError:
            return replace(entry, state=Cancelled())
        except Exception as error:  # one file must not stop the reading of the others
            if not isinstance(error, UnreadableError):
                path = entry.file.path
                log.warning("reading %s failed: %s", redacted(path), in_one_line(error, path))
            problem = as_problem(as_unreadable(entry.file.path, error))
            return replace(entry, state=Unreadable(problem=problem))
        self.eta.finished(clock, monotonic())
        state, facts = _state_and_facts(result)
        return replace(entry, state=state, facts=facts)

    def _request(self, task: ReadingTask) -> ReadRequest:
        entry = task.entry
        return ReadRequest(
            file=entry.file,
            stamp=entry.stamp,
            steps=self._steps(entry.file.run, needs_events=task.needs_events),
            returns_trace=task.needs_events,
            cache=self._options.settings.cache,
        )

    def _steps(self, run: str, *, needs_events: bool) -> tuple[Step, ...]:
        options = self._options
        if options.prepare is None:
            return ()
        prepare = options.prepare if needs_events else summarise
        if options.advice is not None:
            prepare = partial(prepare, settings=options.advice.for_run(run))
        return (("analysing", analyse), ("advising", prepare))


def _unless_growing(entry: Entry) -> Entry:
    """Return an entry, as growing if the file was read while being written."""
    is_cut_off = _is_cut_off(entry)
    if not is_cut_off and not isinstance(entry.state, Unreadable):
        return entry
    try:
        now = storage.stamp(entry.file.path)
    except (OSError, UnreadableError):
        return entry
    if not (left_s := write_detection.seconds_until_reread(entry, now, is_cut_off=is_cut_off)):
        return entry
    return replace(
        entry,
        stamp=now,
        state=Growing(due_at=monotonic() + left_s),
        facts=None,
        seen_at=entry.seen_at if now == entry.stamp else monotonic(),
        cut_off_count=entry.cut_off_count + 1,
    )


def _is_cut_off(entry: Entry) -> bool:
    """Return whether a file lacks its end, as an empty file does."""
    # Imported here because it imports pandas, which would delay TensorBoard's start.
    from stepscope.ingest.reader import EMPTY, ENDS_AT_ONCE
    from stepscope.model.trace import TRUNCATIONS

    if isinstance(entry.state, Unreadable):
        return entry.state.problem.message in {EMPTY, ENDS_AT_ONCE}
    if not isinstance(entry.state, Ready | Summarised):
        return False
    if isinstance(entry.state, Ready):
        return entry.state.trace.is_truncated
    advice = entry.facts.advice if entry.facts is not None else None
    return advice is not None and any(item.kind in TRUNCATIONS for item in advice.worker.health)


def _state_and_facts(result: ReadResult) -> tuple[State, Facts]:
    trace = result.trace
    if trace is None:
        return Summarised(), facts_of(result.prepared)
    facts = Facts(
        rank=trace.rank,
        is_synthetic=trace.is_synthetic,
        events=len(trace),
        summary=result.prepared,
    )
    return Ready(trace=trace), facts


class ReadQueue:
    """Reads the queued files of an index; any number of threads may use it."""

    def __init__(self, files: FileIndex, traces: TraceCache, options: CatalogOptions) -> None:
        self._files = files
        self._traces = traces
        self._options = options
        self._executor: Executor = options.executor or DaemonThreads(options.settings.jobs)
        self._has_cluster = options.summary_reader is not None
        self._summary_executor = (
            DaemonThreads(options.summary_jobs) if self._has_cluster else self._executor
        )
        reader = options.reader or ReaderPool(traces.budget, small_bytes=SMALL_BYTES)
        self._reader = FileReader(reader, options)
        self._stops: dict[str, Stop] = {}
        self._is_started = False
        self.eta = self._reader.eta
        self.summaries = SummaryCache(options.store, files.run_size)

    def start(self) -> None:
        """Read the queued files, now and when new ones appear."""
        with self._files.lock:
            if self._is_started:
                return
            self._is_started = True
            queued = self._files.queued()
            self._files.hold(queued)
        self._begin(queued)

    def adopt(self, files: Sequence[StampedFile]) -> None:
        """Replace the files of the index; queue new files, and stop reading removed ones."""
        with self._files.lock:
            fresh = self._files.adopt(files)
            is_started = self._is_started
            if is_started:
                self._files.hold(fresh)
            removed = [identity for identity in self._stops if self._files.get(identity) is None]
        for identity in removed:
            self.stop(identity)
        if is_started:
            self._begin(fresh)

    def request(self, entry: Entry) -> None:
        """Read a file's events before all other files, if they are not in memory."""
        self._files.request(entry.file.run_id, entry.file.id)
        self.start()
        if isinstance(entry.state, Summarised):
            self.enqueue(entry)
        elif isinstance(entry.state, Queued) and self._has_cluster:
            self._submit(entry)  # read here instead of on the cluster

    def enqueue(self, entry: Entry) -> None:
        """Queue a file."""
        self._files.put(replace(entry, state=Queued()))
        if self._is_started:
            self._submit(entry)

    def stop(self, identity: str) -> None:
        """Stop the reading of a file, if it is being read; later progress reports are ignored."""
        with self._files.lock:
            stop = self._stops.pop(identity, None)
        if stop is not None:
            stop.set()

    def store_late(self) -> None:
        """Store summaries of files that were read while their run still had too few files."""
        with self._files.lock:
            entries = tuple(self._files) if self.summaries.is_open else ()
        for entry in entries:
            stored = self.summaries.stored(entry)
            with self._files.lock:
                if stored is not entry and self._files.get(entry.file.id) is entry:
                    self._files.put(stored)

    def _begin(self, entries: Sequence[Entry]) -> None:
        """Submit files to be read; their summaries are looked up first."""
        if entries and self.summaries.is_enabled:
            self._executor.submit(lambda: self._find_summaries(entries))
        else:
            self._submit_all(entries)

    def _find_summaries(self, entries: Sequence[Entry]) -> None:
        summaries = self.summaries.find(entries)
        with self._files.lock:
            for entry in entries:
                summary = summaries.get(entry.file.id)
                if summary is None or self._files.get(entry.file.id) != entry:
                    continue
                state = Queued() if self._files.is_requested(entry.file.id) else Summarised()
                self._files.put(replace(entry, state=state, facts=facts_of(summary)))
        self._submit_all(entries)

    def _submit_all(self, entries: Sequence[Entry]) -> None:
        with self._files.lock:
            self._files.release(entries)
            now = [self._files.get(entry.file.id) for entry in entries]
            queued = [entry for entry in now if entry and isinstance(entry.state, Queued)]
        for entry in queued:
            self._submit(entry)

    def _submit(self, entry: Entry) -> None:
        needs_events = not self._has_cluster or self._needs_events(entry)
        executor = self._executor if needs_events else self._summary_executor
        executor.submit(partial(self._read_next, needs_events=needs_events))

    def _needs_events(self, entry: Entry) -> bool:
        """Return whether a file's events are needed, not only its summary.

        Events are needed for files that the user opened; without a cluster also for the first file
        of a run, and for all files of a small run.
        """
        if self._options.prepare is None or self._files.is_requested(entry.file.id):
            return True
        if self._has_cluster:
            return False
        run = entry.file.run_id
        is_first = self._files.first_of_run(run) == entry.file.id
        if is_first or self._files.run_size(run) > FEW_FILES:
            return is_first
        files = [(other.file, other.stamp) for other in self._files.run(run)]
        return all_fit(files, self._traces.bound_bytes)

    def _take_next(self, *, needs_events: bool) -> ReadingTask | None:
        def is_for_this_executor(entry: Entry) -> bool:
            return not self._has_cluster or self._needs_events(entry) == needs_events

        with self._files.lock:
            entry = self._files.next_queued(is_for_this_executor)
            if entry is None:
                return None
            task = ReadingTask(entry=entry, stop=Stop(), needs_events=self._needs_events(entry))
            progress = ReadProgress(phase="waiting", bytes_total=entry.stamp.size_bytes)
            reading = Reading(progress=progress, clock=Clock(began=monotonic()))
            self._files.put(replace(entry, state=reading))
            self._stops[entry.file.id] = task.stop
            return task

    def _read_next(self, *, needs_events: bool) -> None:
        task = self._take_next(needs_events=needs_events)
        if task is None:
            return
        entry = self._reader.read(task, lambda entry: self._put(task, entry))
        entry = self.summaries.stored(entry)
        with self._files.lock:
            self._put(task, entry)
            if self._stops.get(entry.file.id) is task.stop:
                del self._stops[entry.file.id]
            self._traces.shrink()
            is_idle = not self._files.count(Queued, Reading)
        if is_idle:
            self.summaries.flush()

    def _put(self, task: ReadingTask, entry: Entry) -> None:
        """Replace a file's entry, unless its reading was stopped in the meantime."""
        with self._files.lock:
            now = self._files.get(entry.file.id)  # the file may have been removed
            if now is not None and self._stops.get(entry.file.id) is task.stop:
                self._files.put(replace(entry, file=now.file))  # the run may have a new name
