"""Every error raised on purpose.

```
StepscopeError
├── UnreadableError      a file or folder that cannot be used: path, what is wrong, what to do
├── MissingDataError     this trace does not hold what an analysis or rule needs
│   └── NotApplicableError   and never could: it has nothing of what is asked about
├── UsageError           the caller asked for something that does not exist
└── UnknownNameError        no run, recording or table of that name
```
Messages are for users: what, where, what to do. `in_one_line` tells of errors that nobody foresaw.
"""

import errno
from pathlib import PurePath
from traceback import extract_tb

from stepscope.base.deprecation import deprecated_names
from stepscope.base.urls import redacted

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What a system says where nothing more can be written."""


class StepscopeError(Exception):
    """The base of all errors that stepscope raises on purpose."""


class UnreadableError(StepscopeError):
    """A file or folder cannot be used; `message` and `remedy` are sentences without the path.

    `path` is as it may be shown: an address without its secrets.
    """

    def __init__(self, path: str, message: str, remedy: str) -> None:
        super().__init__(f"{redacted(path)}: {message} {remedy}".rstrip())
        self.path = redacted(path)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["UnreadableError"], tuple[str, str, str]]:
        """Let the error cross a process boundary."""
        return type(self), (self.path, self.message, self.remedy)


class MissingDataError(StepscopeError):
    """The trace does not hold what is needed; `remedy` is the line of code that records it."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class NotApplicableError(MissingDataError):
    """The trace has nothing of what is asked about: a rule on ranks, and there is one process.

    Nothing has to be recorded for it, so there is no remedy.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class UsageError(StepscopeError):
    """The caller asked for something that does not exist or does not fit."""


class UnknownNameError(StepscopeError):
    """No run, recording or table has that name."""


def in_one_line(error: BaseException, path: str = "") -> str:
    """Return what an unforeseen error is and where it was raised, for a log: no traceback.

    The secrets of the address that was read are left out.
    """
    frames = extract_tb(error.__traceback__)
    where = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {redacted(str(error), path)}{where}"


def as_unreadable(path: str, error: Exception) -> UnreadableError:
    """Return any error as the problem of one file, so that it costs that file alone."""
    if isinstance(error, UnreadableError):
        return error
    if isinstance(error, MemoryError):
        message, remedy = "This needs more memory than there is.", "Record fewer steps."
    elif isinstance(error, OSError) and error.errno in NO_ROOM:
        message = f"There is no room to write what was found ({in_one_line(error, path)})."
        remedy = "Make room on that disk, or set TMPDIR to a folder on a larger one."
    else:
        message = f"stepscope failed on this file ({in_one_line(error, path)})."
        remedy = "This is a bug in stepscope: please report it with this line."
    problem = UnreadableError(path, message, remedy)
    problem.__cause__ = error
    return problem


__getattr__ = deprecated_names(
    __name__, {"NotFoundError": ("stepscope.base.errors", "UnknownNameError")}
)
