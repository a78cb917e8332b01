"""The folders that traces are looked for in, and what is wrong with those that have none."""

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


@dataclass(frozen=True, kw_only=True)
class LogDirectory:
    """A folder to look through; `name` goes before its runs' names."""

    path: str
    name: str = ""


def as_problem(error: UnreadableError) -> Problem:
    """Return an error as it is shown beside what can be used."""
    return Problem(path=error.path, message=error.message, remedy=error.remedy)


def stamped(files: Iterable[TraceFile]) -> list[tuple[TraceFile, FileStamp]]:
    """Return files with their sizes and times of change, without those that have gone."""
    found = []
    for file in files:
        try:
            found.append((file, file.listed or storage.stamp(file.path)))
        except (OSError, UnreadableError):  # it has gone since it was listed, or is a dead link
            log.info("%s cannot be looked at", redacted(file.path))
    return found


def why_empty(path: str) -> list[Problem]:
    """Return what is wrong with a folder in which nothing was found; nothing if it is one."""
    if storage.is_folder(path):
        return []
    if _is_there(path):
        message, remedy = "This is a file, not a folder.", "Give the folder that holds it."
    else:
        message, remedy = "There is no such folder.", "Check the path; it is looked for again."
    return [Problem(path=redacted(path), message=message, remedy=remedy)]


def _is_there(path: str) -> bool:
    try:
        return storage.exists(path)
    except OSError:
        return False
