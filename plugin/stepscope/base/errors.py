"""All errors that stepscope raises intentionally.

```
StepscopeError
├── UnreadableError      a file or folder that cannot be used: path, problem, remedy
├── MissingDataError     this trace lacks the data that an analysis or rule needs
│   └── NotApplicableError   and cannot have it: its subject does not occur
├── UsageError           the caller requested something that does not exist
│   └── QueryError       an SQL query that cannot run
└── UnknownNameError     no run, trace or table of that name
```
Messages are for users: problem, location, remedy. `in_one_line` describes unexpected errors.
"""

import errno
from collections.abc import Iterable
from pathlib import PurePath
from traceback import extract_tb

from stepscope.base.deprecation import deprecated_names
from stepscope.base.urls import redacted

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error codes of systems without space for files."""


class StepscopeError(Exception):
    """The base of all errors that stepscope raises intentionally."""


class UnreadableError(StepscopeError):
    """A file or folder cannot be used; `message` and `remedy` are sentences without the path.

    `path` is for display: a URL without its secrets.
    """

    def __init__(self, path: str, message: str, remedy: str) -> None:
        super().__init__(f"{redacted(path)}: {message} {remedy}".rstrip())
        self.path = redacted(path)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["UnreadableError"], tuple[str, str, str]]:
        """Support pickling, for other processes."""
        return type(self), (self.path, self.message, self.remedy)


class MissingDataError(StepscopeError):
    """The trace lacks required data; `remedy` is the line of code that records it."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class NotApplicableError(MissingDataError):
    """The trace has none of the subject, such as ranks in a trace of one process; no remedy."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class UsageError(StepscopeError):
    """The caller requested something that does not exist or is invalid."""


class QueryError(UsageError):
    """An SQL query cannot run; the message may have several lines."""


class UnknownNameError(StepscopeError):
    """No run, trace or table has that name."""


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three similar names, ignoring case; the most similar first."""
    from difflib import get_close_matches  # noqa: PLC0415 (only for errors)

    by_lower_case = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.5)
    return [by_lower_case[other] for other in near]


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a question with the nearest names; empty where none is near."""
    near = nearest(name, names)
    return f"Did you mean {' or '.join(near)}? " if near else ""


def in_one_line(error: BaseException, path: str = "") -> str:
    """Return an error with its location in the source, for a log.

    Secrets of the URL `path` are removed.
    """
    frames = extract_tb(error.__traceback__)
    location = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {redacted(str(error), path)}{location}"


def as_unreadable(path: str, error: Exception) -> UnreadableError:
    """Return any error as the problem of one file, so that it affects only that file."""
    if isinstance(error, UnreadableError):
        return error
    if isinstance(error, MemoryError):
        message, remedy = "This needs more memory than is available.", "Record fewer steps."
    elif isinstance(error, OSError) and error.errno in NO_ROOM:
        message = f"There is no space to write the result ({in_one_line(error, path)})."
        remedy = "Free space on that disk, or set TMPDIR to a folder on a larger one."
    else:
        message = f"stepscope failed on this file ({in_one_line(error, path)})."
        remedy = "This is a bug in stepscope: please report it with this line."
    problem = UnreadableError(path, message, remedy)
    problem.__cause__ = error
    return problem


__getattr__ = deprecated_names(
    __name__, {"NotFoundError": ("stepscope.base.errors", "UnknownNameError")}
)
