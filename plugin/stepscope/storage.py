"""The only module that touches a file system."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """What tells one state of a file from another."""

    size_bytes: int
    modified_ns: int


def stamp(path: str) -> FileStamp:
    """Return the file's size and time of change."""
    status = Path(path).stat()
    return FileStamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading."""
    return Path(path).open("rb")


def walk(root: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each folder under `root`, itself first, with its file names; links are followed once.

    A folder that cannot be listed is left out. A link that leads back to a folder already seen
    ends there.
    """
    seen: set[tuple[int, int]] = set()
    for folder, subfolders, files in os.walk(root, followlinks=True):
        status = Path(folder).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            subfolders.clear()
            continue
        seen.add(identity)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield folder, tuple(sorted(files))


def is_folder(path: str) -> bool:
    """Tell whether `path` is a folder."""
    return Path(path).is_dir()


def exists(path: str) -> bool:
    """Tell whether `path` is there at all."""
    return Path(path).exists()


def read_text(path: str) -> str:
    """Return a text file's content."""
    return Path(path).read_text(encoding="utf-8")
