"""Log directories, and the problems of those without traces."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from stepscope import storage
from stepscope.base.errors import UnreadableError
from stepscope.base.report import Problem
from stepscope.base.urls import redacted
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

log = logging.getLogger(__name__)

StampedFile = tuple[TraceFile, FileStamp]


@dataclass(frozen=True, kw_only=True)
class LogDirectory:
    """A folder to scan for traces; `name` is the prefix of its runs' names."""

    path: str
    name: str = ""
    is_file: bool = False
    """Whether the path is that of one trace, of any name."""


def as_problem(error: UnreadableError) -> Problem:
    """Return an error as the API reports it."""
    return Problem(path=error.path, message=error.message, remedy=error.remedy)


def stamped(files: Iterable[TraceFile]) -> list[StampedFile]:
    """Return the files that still exist, with their stamps."""
    existing = []
    for file in files:
        try:
            existing.append((file, file.listed or storage.stamp(file.path)))
        except (OSError, UnreadableError):  # deleted since it was listed, or a dead link
            log.info("%s cannot be opened", redacted(file.path))
    return existing


def missing_files_problem(directory: LogDirectory) -> list[Problem]:
    """Return the problem of a path without files; empty for an empty folder."""
    path = directory.path
    if storage.is_folder(path):
        return []
    try:
        is_file = storage.exists(path)
    except OSError:
        is_file = False
    if is_file:
        message, remedy = "This is a file, not a folder.", "Pass the folder that contains it."
    else:
        noun = "file" if directory.is_file else "folder"
        message, remedy = f"There is no such {noun}.", "Check the path; it is scanned again."
    return [Problem(path=redacted(path), message=message, remedy=remedy)]
