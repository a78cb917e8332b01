"""Local files; `stepscope.storage` documents these functions."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from stepscope.base.errors import nearest
from stepscope.storage.listing import PAGE_COUNT, FileStamp, Listing, NameFilter, names_only

READING = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK")
)
"""Flags with which a pipe in place of a file opens at once, instead of waiting for a writer."""
MOST_COMPARED = 10_000
"""Entries of a folder that are compared with a missing name."""
SPECIAL = "it is a pipe, a socket or a device, not a file"


def stamp(path: str) -> FileStamp:
    """Return a file's size and modification time."""
    return _stamp_of_file(Path(path).stat(), path)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading."""
    return open_with_stamp(path)[0]


def open_with_stamp(path: str) -> tuple[BinaryIO, FileStamp]:
    """Open a file for reading, and return the stamp of the opened file."""
    descriptor = os.open(path, READING)
    try:
        stamp = _stamp_of_file(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb"), stamp
    except BaseException:
        os.close(descriptor)
        raise


def _stamp_of_file(status: os.stat_result, path: str) -> FileStamp:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, SPECIAL, path)
    return _stamp_of(status)


def _stamp_of(status: os.stat_result) -> FileStamp:
    return FileStamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns, inode=status.st_ino)


def walk(root: str, needs_stamp: NameFilter) -> Iterator[Listing]:
    """Yield each folder under `root` with its files."""
    seen: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        identity = _identity(folder)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        subfolders: list[str] = []
        yield from _pages(folder, needs_stamp, subfolders)
        shown = sorted((name for name in subfolders if not name.startswith(".")), reverse=True)
        waiting += [os.path.join(folder, name) for name in shown]  # noqa: PTH118 (Path is slow)


def files_in(folder: str) -> Iterator[Listing]:
    """Yield the files of one folder."""
    return _pages(folder, names_only, [])


def _pages(folder: str, needs_stamp: NameFilter, subfolders: list[str]) -> Iterator[Listing]:
    """Yield a folder's files in at least one page; append its subfolders' names to a list."""
    page: dict[str, FileStamp | None] = {}
    with suppress(OSError), os.scandir(folder) as entries:  # not listable, or deleted
        for entry in entries:
            if _is_folder(entry):
                subfolders.append(entry.name)
                continue
            page[entry.name] = _stamp(entry) if needs_stamp(entry.name) else None
            if len(page) == PAGE_COUNT:
                yield folder, page
                page = {}
    yield folder, page


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _stamp(entry: "os.DirEntry[str]") -> FileStamp | None:
    """Return a listed file's stamp; None for special files and dead links."""
    try:
        status = entry.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _stamp_of(status)


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_folder(path: str) -> bool:
    """Return whether `path` is a folder."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises where a name is too long)


def exists(path: str) -> bool:
    """Return whether `path` exists."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def real_path(path: str) -> str:
    """Return the path without links."""
    return os.path.realpath(path)


def similar_paths(path: str) -> list[str]:
    """Return the entries whose names are like the first missing part of a path."""
    missing = Path(path)
    while missing.parent != missing and not missing.parent.is_dir():
        missing = missing.parent
    with suppress(OSError), os.scandir(missing.parent) as entries:
        names = [entry.name for entry in islice(entries, MOST_COMPARED)]
        return [str(missing.with_name(name)) for name in nearest(missing.name, names)]
    return []
