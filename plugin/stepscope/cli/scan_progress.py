"""The line on a terminal that says how far a look for traces has come: it shows on long ones."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from stepscope.base.formatting import count

if TYPE_CHECKING:
    from stepscope.storage.discover import Page

SOON_SECONDS = 1.0
"""A look that takes less says nothing."""

Tell = Callable[["Page"], None]


@contextmanager
def told(path: str) -> Iterator[Tell]:
    """Give what is to be told of each page of a listing, within a look through one folder."""
    with ExitStack() as stack:
        yield _Line(path, stack) if sys.stderr.isatty() else _silent


def _silent(_: "Page") -> None:
    """Say nothing: who reads a file later has no use for it."""


class _Line:
    """How many files a look has come across, and how many of them are traces."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._began = monotonic()
        self._looked_at = self._found = 0
        self._show: Callable[[str], None] | None = None

    def __call__(self, page: "Page") -> None:
        self._looked_at += page.file_count
        self._found += len(page.files)
        if monotonic() - self._began < SOON_SECONDS:
            return
        if self._show is None:
            self._show = self._shown()
        files, traces = count(self._looked_at, "file"), count(self._found, "trace")
        self._show(f"{self._path}: {files} looked at, {traces} found")

    def _shown(self) -> Callable[[str], None]:
        from rich.console import Console
        from rich.markup import escape

        status = self._stack.enter_context(Console(stderr=True).status("", spinner="line"))
        return lambda text: status.update(escape(text))
