"""The only package that touches file systems: this machine's, and remote ones through fsspec.

A path with a scheme such as `s3://` is remote. Errors of local paths are `OSError`, of remote ones
`UnreadableError` with a remedy. fsspec is slow to import, so the first remote path imports it; its
connections are not stored here, since they must not outlive a fork.
"""

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from stepscope.base import urls
from stepscope.storage import local
from stepscope.storage.listing import FileStamp, Listing, NameFilter, names_only

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
    def walk(self, root: str, needs_stamp: NameFilter) -> Iterator[Listing]: ...
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
    """Return a file's size and time of change.

    Raises:
        OSError: it cannot be opened, or is no regular file (a pipe would block).
        UnreadableError: the same for a remote file.
    """
    return _of(path).stamp(path)


def open_binary(path: str) -> BinaryIO:
    """Open a file for sequential reading; a remote one is fetched in blocks.

    Raises:
        OSError: it cannot be opened; reading may raise it as well.
        UnreadableError: the same for a remote file.
    """
    return _of(path).open_binary(path)


def walk(root: str, needs_stamp: NameFilter = names_only) -> Iterator[Listing]:
    """Yield the folders under `root` with their files, page by page.

    A large folder has several pages, remote ones come in any order, and pages may be empty. Links
    are followed once. Local folders that cannot be listed are left out, as are folders whose names
    begin with a dot. Stamps come with local files that need them, and with all remote files.

    Raises:
        UnreadableError: remote storage refuses to list it, or stops answering.
    """
    return _of(root).walk(root, needs_stamp)


def files_in(folder: str) -> Iterator[Listing]:
    """Yield the files of one folder without its subfolders, page by page.

    Raises:
        UnreadableError: remote storage refuses to list it.
    """
    return _of(folder).files_in(folder)


def is_folder(path: str) -> bool:
    """Return whether `path` is a folder, which local paths that cannot be opened are not.

    Raises:
        UnreadableError: remote storage does not answer.
    """
    return _of(path).is_folder(path)


def exists(path: str) -> bool:
    """Return whether `path` exists.

    Raises:
        OSError: the name is too long, or a folder may not be entered.
        UnreadableError: remote storage does not answer.
    """
    return _of(path).exists(path)


def real_path(path: str) -> str:
    """Return the path without links; a circular link stays as it is."""
    return _of(path).real_path(path)
