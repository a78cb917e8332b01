"""Progress of a long scan for traces, as a line on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from stepscope.base.formatting import count

if TYPE_CHECKING:
    from stepscope.storage.discover import Page

SOON_SECONDS = 1.0
"""A shorter scan shows no progress."""

OnPage = Callable[["Page"], None]


@contextmanager
def scan_progress(path: str) -> Iterator[OnPage]:
    """Yield a callback for each page of the listing of a folder."""
    with ExitStack() as stack:
        yield _Line(path, stack) if sys.stderr.isatty() else lambda _: None


class _Line:
    """Numbers of files and traces that a scan has seen."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._began = monotonic()
        self._file_count = self._trace_count = 0
        self._show: Callable[[str], None] | None = None

    def __call__(self, page: "Page") -> None:
        self._file_count += page.file_count
        self._trace_count += len(page.files)
        if monotonic() - self._began < SOON_SECONDS:
            return
        if self._show is None:
            self._show = self._shown()
        files, traces = count(self._file_count, "file"), count(self._trace_count, "trace")
        self._show(f"{self._path}: {files} checked, {traces} found")

    def _shown(self) -> Callable[[str], None]:
        from rich.console import Console
        from rich.markup import escape

        status = self._stack.enter_context(Console(stderr=True).status("", spinner="line"))
        return lambda text: status.update(escape(text))
