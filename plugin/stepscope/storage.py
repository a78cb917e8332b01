"""The only module that touches a file system."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

SPECIAL = "it is a pipe, a socket or a device, not a file"


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """What tells one state of a file from another."""

    size_bytes: int
    modified_ns: int


def stamp(path: str) -> FileStamp:
    """Return the file's size and time of change.

    Raises:
        OSError: it cannot be looked at, or is no regular file: to open a pipe would wait for ever.
    """
    status = Path(path).stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, SPECIAL, path)
    return FileStamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading."""
    return Path(path).open("rb")


def walk(root: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each folder under `root`, itself first, with its file names; links are followed once.

    A folder that cannot be listed, or goes meanwhile, is left out. A link that leads back to a
    folder already seen ends there.
    """
    seen: set[tuple[int, int]] = set()
    for folder, subfolders, files in os.walk(root, followlinks=True):
        identity = _identity(folder)
        if identity is None or identity in seen:
            subfolders.clear()
            continue
        seen.add(identity)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield folder, tuple(sorted(files))


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_folder(path: str) -> bool:
    """Tell whether `path` is a folder; one that cannot be looked at is none."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises where a name is too long)


def exists(path: str) -> bool:
    """Tell whether `path` is there at all.

    Raises:
        OSError: that cannot be told: a name too long, or a folder that may not be entered.
    """
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def real_path(path: str) -> str:
    """Return the path without links; a link that leads to itself stays as it is."""
    return os.path.realpath(path)


def read_text(path: str) -> str:
    """Return a text file's content."""
    return Path(path).read_text(encoding="utf-8")
