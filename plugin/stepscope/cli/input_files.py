"""The trace files at the paths of a command, and the problems of other paths."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stepscope.base.errors import UnreadableError
    from stepscope.base.report import Problem
    from stepscope.storage.discover import Page, TraceFile


SOON_SECONDS = 1.0
"""A shorter scan displays no progress."""

OnPage = Callable[["Page"], None]


@contextmanager
def scan_progress(path: str) -> Iterator[OnPage]:
    """Yield a callback for each page of the listing of a folder."""
    with ExitStack() as stack:
        yield _Line(path, stack) if sys.stderr.isatty() else lambda _: None


class _Line:
    """Counts of the files and traces that a scan has listed."""

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
        from stepscope.base.formatting import count

        files, traces = count(self._file_count, "file"), count(self._trace_count, "trace")
        self._show(f"{self._path}: {files} checked, {traces} found")

    def _shown(self) -> Callable[[str], None]:
        from rich.console import Console
        from rich.markup import escape

        status = self._stack.enter_context(Console(stderr=True).status("", spinner="line"))
        return lambda text: status.update(escape(text))


def files_at(paths: Sequence[str]) -> "tuple[list[TraceFile], list[UnreadableError]]":
    """Return the traces at these paths, and the problems of the other paths."""
    from stepscope import storage
    from stepscope.base import urls
    from stepscope.base.errors import UnreadableError
    from stepscope.storage import discover

    files: dict[str, TraceFile] = {}
    """By real path, so that a file counts once."""
    problems: list[UnreadableError] = []
    for path in paths:
        try:
            with scan_progress(urls.redacted(path)) as on_page:
                files_of_path = discover.at(path, on_page)
            for file in files_of_path:
                files.setdefault(storage.real_path(file.path), file)
        except UnreadableError as problem:
            problems.append(problem)
    return discover.as_runs(files.values()), problems


def show_tracebacks(problems: "Sequence[UnreadableError]") -> None:
    """Print the tracebacks of unexpected errors with `--traceback`."""
    import traceback

    if click.get_current_context().find_root().params["traceback"]:
        for error in problems:
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)


def as_problems(errors: "Sequence[UnreadableError]") -> "tuple[Problem, ...]":
    """Return errors as problems of a report."""
    from stepscope.base.report import Problem

    return tuple(
        Problem(path=error.path, message=error.message, remedy=error.remedy) for error in errors
    )
