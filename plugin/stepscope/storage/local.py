"""Files of this machine; `stepscope.storage` says what each function promises."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from stepscope.storage.stamps import FileStamp

SPECIAL = "it is a pipe, a socket or a device, not a file"


def stamp(path: str) -> FileStamp:
    """Return the file's size and time of change."""
    status = Path(path).stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, SPECIAL, path)
    return FileStamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading."""
    return Path(path).open("rb")


def walk(root: str) -> Iterator[tuple[str, dict[str, FileStamp | None]]]:
    """Yield each folder under `root`; its files are not looked at."""
    seen: set[tuple[int, int]] = set()
    for folder, subfolders, files in os.walk(root, followlinks=True):
        identity = _identity(folder)
        if identity is None or identity in seen:
            subfolders.clear()
            continue
        seen.add(identity)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield folder, dict.fromkeys(sorted(files))


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_folder(path: str) -> bool:
    """Tell whether `path` is a folder."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises where a name is too long)


def exists(path: str) -> bool:
    """Tell whether `path` is there at all."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def real_path(path: str) -> str:
    """Return the path without links."""
    return os.path.realpath(path)
