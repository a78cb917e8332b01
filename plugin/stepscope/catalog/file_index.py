"""What is known of every file: by its id, by its run, and in the order in which they are read."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

from stepscope.base.errors import UnknownNameError
from stepscope.catalog.file_state import Entry, Queued, State


class FileIndex:
    """A value a file, replaced as a whole; who uses it from several threads holds a lock."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._runs: dict[str, tuple[str, ...]] = {}
        self._counts: Counter[type[State]] = Counter()
        self._asked_for: dict[str, float] = {}
        self._held: set[str] = set()
        self._line: list[str] | None = None
        """Those that wait, the most eager last; None where that has to be found out anew."""
        self.version = 0
        """Another number whenever anything has changed."""

    def __contains__(self, identity: str) -> bool:
        return identity in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """Go through what is known, by run, worker and time."""
        return iter(self._entries.values())

    def get(self, identity: str) -> Entry | None:
        """Return what is known of a file; None where there is no such file."""
        return self._entries.get(identity)

    def of(self, identity: str) -> Entry:
        """Return what is known of a file.

        Raises:
            UnknownNameError: no file has that id.
        """
        entry = self._entries.get(identity)
        if entry is None:
            msg = f"no trace has the id {identity!r}: it may have been moved or deleted"
            raise UnknownNameError(msg)
        return entry

    def of_run(self, identity: str) -> tuple[Entry, ...]:
        """Return what is known of a run's files.

        Raises:
            UnknownNameError: no run has that id.
        """
        if identity not in self._runs:
            msg = f"no run has the id {identity!r}: it may have been moved or deleted"
            raise UnknownNameError(msg)
        return tuple(self._entries[each] for each in self._runs[identity])

    def first_of_run(self, identity: str) -> str:
        """Return the id of a run's first file: the one that a visitor sees first."""
        return self._runs[identity][0]

    def count_of_run(self, identity: str) -> int:
        """Return how many files a run has."""
        return len(self._runs.get(identity, ()))

    def count(self, *kinds: type[State]) -> int:
        """Return how many files are in one of these states."""
        return sum(self._counts[kind] for kind in kinds)

    def replace_all(self, entries: Mapping[str, Entry]) -> None:
        """Know these from here on, in their order, and no others."""
        runs: dict[str, list[str]] = {}
        for identity, entry in entries.items():
            runs.setdefault(entry.file.run_id, []).append(identity)
        self._runs = {run: tuple(own) for run, own in runs.items()}
        self._entries = dict(entries)
        self._counts = Counter(type(entry.state) for entry in entries.values())
        self._held &= entries.keys()
        self._changed(is_line=True)

    def put(self, entry: Entry) -> None:
        """Replace what is known of a file."""
        before = self._entries[entry.file.id]
        self._entries[entry.file.id] = entry
        self._counts[type(before.state)] -= 1
        self._counts[type(entry.state)] += 1
        self._changed(is_line=isinstance(entry.state, Queued) and before.state != entry.state)

    def ask_for(self, *identities: str) -> None:
        """Note that files or runs are asked for now: they go before all others."""
        now = monotonic()
        self._asked_for.update(dict.fromkeys(identities, now))
        if self._counts[Queued]:
            self._changed(is_line=True)

    def was_asked_for(self, identity: str) -> bool:
        """Tell whether somebody wanted to see a file or run."""
        return identity in self._asked_for

    def last_asked_for(self, entry: Entry) -> tuple[float, float]:
        """Return when its run was asked for, and when it was itself."""
        asked_for = self._asked_for.get
        return asked_for(entry.file.run_id, 0.0), asked_for(entry.file.id, 0.0)

    def hold(self, identities: Iterable[str]) -> None:
        """Let nobody take these: it is being found out whether they need to be read."""
        self._held.update(identities)

    def release(self, identities: Iterable[str]) -> None:
        """Let them be taken."""
        self._held.difference_update(identities)
        self._line = None

    def waiting(self) -> list[Entry]:
        """Return what waits: what was asked for first, then what was recorded last."""
        return [self._entries[each] for each in reversed(self._line_now()) if self._waits(each)]

    def next_waiting(self, suits: Callable[[Entry], bool]) -> Entry | None:
        """Return the most eager of those that wait and suit."""
        line = self._line_now()
        while line and not self._waits(line[-1]):
            line.pop()
        own = (self._entries[each] for each in reversed(line) if self._waits(each))
        return next((each for each in own if each.file.id not in self._held and suits(each)), None)

    def _waits(self, identity: str) -> bool:
        entry = self._entries.get(identity)
        return entry is not None and isinstance(entry.state, Queued)

    def _line_now(self) -> list[str]:
        if self._line is None:
            waiting = [entry for entry in self if isinstance(entry.state, Queued)]
            waiting.sort(key=self._eagerness, reverse=True)  # keeps the order of equals
            self._line = [entry.file.id for entry in reversed(waiting)]
        return self._line

    def _eagerness(self, entry: Entry) -> tuple[tuple[float, float], int]:
        return self.last_asked_for(entry), entry.file.recorded_ns

    def _changed(self, *, is_line: bool) -> None:
        self.version += 1
        if is_line:
            self._line = None
