"""The trace files with their states, by id and by run, and the order in which they are read."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from time import monotonic

from stepscope.base.errors import UnknownNameError
from stepscope.catalog import write_detection
from stepscope.catalog.file_state import Entry, Growing, Queued, Reading, State
from stepscope.catalog.log_directories import StampedFile
from stepscope.storage import FileStamp


class FileIndex:
    """One `Entry` per file, replaced as a whole; threads hold `lock` during every use."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._entries: dict[str, Entry] = {}
        self._runs: dict[str, tuple[str, ...]] = {}
        self._counts: Counter[type[State]] = Counter()
        self._requested_at: dict[str, float] = {}
        self._on_hold: set[str] = set()
        self._order: list[str] | None = None
        """Ids of queued files, the next one last; None if it must be recomputed."""
        self.version = 0
        """Incremented with every change of the index."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate by run, worker and time."""
        return iter(self._entries.values())

    def get(self, identity: str) -> Entry | None:
        """Return a file's entry; None for an unknown id."""
        return self._entries.get(identity)

    def entry(self, identity: str) -> Entry:
        """Return a file's entry.

        Raises:
            UnknownNameError: No file has that id.
        """
        entry = self._entries.get(identity)
        if entry is None:
            msg = f"no trace has the id {identity!r}: it may have been moved or deleted"
            raise UnknownNameError(msg)
        return entry

    def run(self, identity: str) -> tuple[Entry, ...]:
        """Return the entries of a run's files.

        Raises:
            UnknownNameError: No run has that id.
        """
        if identity not in self._runs:
            msg = f"no run has the id {identity!r}: it may have been moved or deleted"
            raise UnknownNameError(msg)
        return tuple(self._entries[file] for file in self._runs[identity])

    def first_of_run(self, identity: str) -> str:
        """Return the id of a run's first file, which the page opens first."""
        return self._runs[identity][0]

    def run_size(self, identity: str) -> int:
        """Return the number of files of a run."""
        return len(self._runs.get(identity, ()))

    def count(self, *kinds: type[State]) -> int:
        """Return the number of files in one of these states."""
        return sum(self._counts[kind] for kind in kinds)

    def put(self, entry: Entry) -> None:
        """Replace a file's entry."""
        before = self._entries[entry.file.id]
        self._entries[entry.file.id] = entry
        self._counts[type(before.state)] -= 1
        self._counts[type(entry.state)] += 1
        self._changed(is_order=isinstance(entry.state, Queued) and before.state != entry.state)

    def adopt(self, files: Sequence[StampedFile]) -> list[Entry]:
        """Replace the files of the index, in this order; return new and changed ones."""
        now = monotonic()
        entries: dict[str, Entry] = {}
        fresh: list[Entry] = []
        for file, stamp in files:
            entry = self._entries.get(file.id)
            if entry is None or _is_stale(entry, stamp):
                entry = _listed((file, stamp), entry, now)
                fresh.append(entry)
            elif entry.file != file:
                entry = replace(entry, file=file)
            entries[file.id] = entry
        if fresh or list(entries) != list(self._entries):
            self._replace_all(entries)
        return fresh

    def _replace_all(self, entries: Mapping[str, Entry]) -> None:
        runs: dict[str, list[str]] = {}
        for identity, entry in entries.items():
            runs.setdefault(entry.file.run_id, []).append(identity)
        self._runs = {run: tuple(files) for run, files in runs.items()}
        self._entries = dict(entries)
        self._counts = Counter(type(entry.state) for entry in entries.values())
        self._on_hold &= entries.keys()
        self._changed(is_order=True)

    def growing(self) -> list[Entry]:
        """Return the files that are still being written."""
        if not self._counts[Growing]:
            return []
        return [entry for entry in self if isinstance(entry.state, Growing)]

    def has_settled(self, entry: Entry, stamp: FileStamp) -> bool:
        """Return whether a growing file can be read; update its stamp if it changed."""
        now = monotonic()
        if self._entries.get(entry.file.id) is not entry:
            return False
        if stamp != entry.stamp:
            due_at = now + write_detection.seconds_until_read(stamp, now, entry.cut_off_count)
            self.put(replace(entry, stamp=stamp, seen_at=now, state=Growing(due_at=due_at)))
            return False
        return isinstance(entry.state, Growing) and entry.state.due_at <= now

    def request(self, *identities: str) -> None:
        """Give files or runs priority over all others."""
        self._requested_at.update(dict.fromkeys(identities, monotonic()))
        if self._counts[Queued]:
            self._changed(is_order=True)

    def is_requested(self, identity: str) -> bool:
        """Return whether the user opened a file or run."""
        return identity in self._requested_at

    def requested_at(self, entry: Entry) -> tuple[float, float]:
        """Return the times of the last request for a file's run and for the file."""
        time_of = self._requested_at.get
        return time_of(entry.file.run_id, 0.0), time_of(entry.file.id, 0.0)

    def hold(self, entries: Iterable[Entry]) -> None:
        """Exclude files from reading while their summaries are looked up."""
        self._on_hold.update(entry.file.id for entry in entries)

    def release(self, entries: Iterable[Entry]) -> None:
        """End `hold`."""
        self._on_hold.difference_update(entry.file.id for entry in entries)
        self._order = None

    def queued(self) -> list[Entry]:
        """Return the queued files in reading order: last requested, then last recorded."""
        return [self._entries[file] for file in reversed(self._read_order()) if self._waits(file)]

    def next_queued(self, accepts: Callable[[Entry], bool]) -> Entry | None:
        """Return the first queued file that is not on hold and is accepted."""
        order = self._read_order()
        while order and not self._waits(order[-1]):
            order.pop()
        ready = (file for file in reversed(order) if file not in self._on_hold)
        entries = (self._entries[file] for file in ready if self._waits(file))
        return next(filter(accepts, entries), None)

    def _waits(self, identity: str) -> bool:
        entry = self._entries.get(identity)
        return entry is not None and isinstance(entry.state, Queued)

    def _read_order(self) -> list[str]:
        if self._order is None:
            queued = [entry for entry in self if isinstance(entry.state, Queued)]
            queued.sort(key=self._precedence, reverse=True)  # stable for equal keys
            self._order = [entry.file.id for entry in reversed(queued)]
        return self._order

    def _precedence(self, entry: Entry) -> tuple[tuple[float, float], int]:
        return self.requested_at(entry), entry.file.recorded_ns

    def _changed(self, *, is_order: bool) -> None:
        self.version += 1
        if is_order:
            self._order = None


def _listed(listed: StampedFile, before: Entry | None, now: float) -> Entry:
    """Return the entry of a new or changed file."""
    file, stamp = listed
    count = before.cut_off_count if before is not None else 0
    left_s = write_detection.seconds_until_read(stamp, now, count)
    state = Growing(due_at=now + left_s) if left_s else Queued()
    return Entry(file=file, stamp=stamp, state=state, seen_at=now, cut_off_count=count)


def _is_stale(entry: Entry, stamp: FileStamp) -> bool:
    """Return whether to read a file again; a file that changes while it is read is not stale."""
    return entry.stamp != stamp and not isinstance(entry.state, Reading)
