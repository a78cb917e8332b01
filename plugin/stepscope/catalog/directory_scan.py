"""Looks through log directories page by page, and tells at once what was found."""

from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from stepscope.base.errors import UnreadableError
from stepscope.base.report import Problem
from stepscope.catalog.log_directories import LogDirectory, as_problem, stamped, why_empty
from stepscope.storage import FileStamp, discover
from stepscope.storage.discover import TraceFile

Found = Mapping[str, tuple[TraceFile, FileStamp]]
"""Files by path."""
Adopt = Callable[[list[tuple[TraceFile, FileStamp]]], None]
RESTS_AN_ADOPTION = 10
"""To adopt what was found so far takes the longer the more it is: no more than a tenth of a look
goes into it."""


class DirectoryScan:
    """What is found by looking; one thread looks, others may ask how far that is, or end it."""

    def __init__(self, directories: Iterable[LogDirectory], adopt: Adopt) -> None:
        """`adopt` is given all that is known to be there, also while the look goes on."""
        self.directories = tuple(directories)
        self._adopt = adopt
        self._found: dict[LogDirectory, Found] = {}
        self._arranged: tuple[Found, list[tuple[TraceFile, FileStamp]]] = ({}, [])
        self._adopts_at = 0.0
        self.file_count = 0
        """Files that were looked at, traces or not, in the look that goes on or the last one."""
        self.problems: tuple[Problem, ...] = ()
        """Log directories that cannot be looked through."""
        self.is_cancelled = False
        """Whether the user ended the last look, or the one that goes on now."""

    def cancel(self) -> None:
        """End the look that goes on; what it found stays."""
        self.is_cancelled = True

    def look(self) -> None:
        """Look through the directories once."""
        self.is_cancelled = False
        self.file_count = 0
        self._adopts_at = 0.0
        problems = [problem for each in self.directories for problem in self._look_through(each)]
        self.problems = tuple(problems)
        self._tell()

    def _look_through(self, directory: LogDirectory) -> list[Problem]:
        """Note what is in a directory; where it is not looked through, what was found stays."""
        before = self._found.get(directory, {})
        now: dict[str, tuple[TraceFile, FileStamp]] = {}
        count = self.file_count
        problems: list[Problem] = []
        try:
            for page in discover.pages(directory.path, directory.name):
                if self.is_cancelled:
                    break
                self.file_count += page.file_count
                new = {file.path: (file, stamp) for file, stamp in stamped(page.files)}
                now |= new
                is_due = monotonic() >= self._adopts_at
                if is_due and any(before.get(path) != each for path, each in new.items()):
                    self._found[directory] = {**before, **now}
                    self._tell_so_far()
            if self.file_count == count and not self.is_cancelled:
                problems = why_empty(directory.path)
        except UnreadableError as error:
            self._found[directory] = {**before, **now}
            return [as_problem(error)]
        self._found[directory] = {**before, **now} if self.is_cancelled else now
        return problems

    def _tell_so_far(self) -> None:
        begun_at = monotonic()
        self._tell()
        now = monotonic()
        self._adopts_at = now + RESTS_AN_ADOPTION * (now - begun_at)

    def _tell(self) -> None:
        found = {path: each for own in self._found.values() for path, each in own.items()}
        if found != self._arranged[0]:
            self._arranged = found, self._in_order()
        self._adopt(self._arranged[1])

    def _in_order(self) -> list[tuple[TraceFile, FileStamp]]:
        own = [self._found.get(each, {}) for each in self.directories]
        files = [
            file
            for found in own
            for file in discover.sorted_files(file for file, _ in found.values())
        ]
        stamps = {path: stamp for found in own for path, (_, stamp) in found.items()}
        return [(file, stamps[file.path]) for file in discover.as_runs(files)]
