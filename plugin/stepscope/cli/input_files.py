"""The trace files at the paths of a command, and the problems of other paths."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stepscope.base.errors import UnreadableError
    from stepscope.base.report import Problem
    from stepscope.storage.discover import TraceFile


def files_at(paths: Sequence[str]) -> "tuple[list[TraceFile], list[UnreadableError]]":
    """Return the traces at these paths, and the problems of the other paths."""
    from stepscope import storage
    from stepscope.base import urls
    from stepscope.base.errors import UnreadableError
    from stepscope.cli import scan_progress
    from stepscope.storage import discover

    files: dict[str, TraceFile] = {}
    """By real path, so that a file counts once."""
    problems: list[UnreadableError] = []
    for path in paths:
        try:
            with scan_progress.scan_progress(urls.redacted(path)) as on_page:
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
