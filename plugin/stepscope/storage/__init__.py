"""The only package that touches file systems: this machine's, and remote ones through fsspec.

A path is remote where it begins like `s3://`. What is wrong with a local path is an `OSError`;
with a remote one, an `UnreadableError` that says what to do. fsspec is imported with the first
remote path, since that takes longer than all the rest; nothing of it is kept here, because its
connections must not outlive a fork.
"""

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from stepscope.base import urls
from stepscope.storage import local
from stepscope.storage.file_stamp import FileStamp
from stepscope.storage.listing import Listing, NameFilter, names_only

__all__ = [
    "FileStamp",
    "Listing",
    "exists",
    "files_in",
    "is_folder",
    "open_binary",
    "real_path",
    "stamp",
    "walk",
]


class _System(Protocol):
    def stamp(self, path: str) -> FileStamp: ...
    def open_binary(self, path: str) -> BinaryIO: ...
    def walk(self, root: str, is_wanted: NameFilter) -> Iterator[Listing]: ...
    def files_in(self, folder: str) -> Iterator[Listing]: ...
    def is_folder(self, path: str) -> bool: ...
    def exists(self, path: str) -> bool: ...
    def real_path(self, path: str) -> str: ...


def _of(path: str) -> _System:
    if not urls.is_remote(path):
        return local
    from stepscope.storage import remote

    return remote


def stamp(path: str) -> FileStamp:
    """Return the file's size and time of change.

    Raises:
        OSError: it cannot be looked at, or is no regular file: to open a pipe would wait for ever.
        UnreadableError: the same of a remote file.
    """
    return _of(path).stamp(path)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading from its start to its end; a remote one arrives in parts.

    Raises:
        OSError: it cannot be opened; reading raises it, too.
        UnreadableError: the same of a remote file.
    """
    return _of(path).open_binary(path)


def walk(root: str, is_wanted: NameFilter = names_only) -> Iterator[Listing]:
    """Yield the folders under `root` with their files, a page at a time; links are followed once.

    A folder of many files comes in several pages, and remote ones come in any order. A page may
    be empty: so much was looked at for nothing. Of a local file that is wanted, the page says more
    than the name.

    A local folder that cannot be listed, or goes meanwhile, is left out. A link that leads back
    to a folder already seen ends there. Folders whose names begin with a dot are left out.

    Raises:
        UnreadableError: remote storage refuses to list it, or does not answer any more.
    """
    return _of(root).walk(root, is_wanted)


def files_in(folder: str) -> Iterator[Listing]:
    """Yield the files of one folder, a page at a time, and nothing of the folders below it.

    Raises:
        UnreadableError: remote storage refuses to list it.
    """
    return _of(folder).files_in(folder)


def is_folder(path: str) -> bool:
    """Tell whether `path` is a folder; a local one that cannot be looked at is none.

    Raises:
        UnreadableError: remote storage does not tell.
    """
    return _of(path).is_folder(path)


def exists(path: str) -> bool:
    """Tell whether `path` is there at all.

    Raises:
        OSError: that cannot be told: a name too long, or a folder that may not be entered.
        UnreadableError: remote storage does not tell, and why.
    """
    return _of(path).exists(path)


def real_path(path: str) -> str:
    """Return the path without links; a link that leads to itself stays as it is."""
    return _of(path).real_path(path)
