"""Files of this machine; `stepscope.storage` says what each function promises."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from stepscope.storage.file_stamp import FileStamp
from stepscope.storage.listing import PAGE_COUNT, Listing, NameFilter, names_only

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


def walk(root: str, is_wanted: NameFilter) -> Iterator[Listing]:
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
        yield from _pages(folder, is_wanted, subfolders)
        shown = sorted((each for each in subfolders if not each.startswith(".")), reverse=True)
        waiting += [os.path.join(folder, each) for each in shown]  # noqa: PTH118 (Path is slow)


def files_in(folder: str) -> Iterator[Listing]:
    """Yield the files of one folder."""
    return _pages(folder, names_only, [])


def _pages(folder: str, is_wanted: NameFilter, subfolders: list[str]) -> Iterator[Listing]:
    """Yield a folder's files, at least one page, and add the names of its folders to a list."""
    page: dict[str, FileStamp | None] = {}
    try:
        with os.scandir(folder) as found:
            for each in found:
                if _is_folder(each):
                    subfolders.append(each.name)
                    continue
                page[each.name] = _listed(each) if is_wanted(each.name) else None
                if len(page) == PAGE_COUNT:
                    yield folder, page
                    page = {}
    except OSError:  # it may not be listed, or went in the middle
        pass
    yield folder, page


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _listed(entry: "os.DirEntry[str]") -> FileStamp | None:
    """Return what is known of a file now; None where it is none, or leads nowhere."""
    try:
        status = entry.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileStamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns)


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
