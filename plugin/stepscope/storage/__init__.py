"""The only package that accesses file systems: this machine's, and remote ones through fsspec.

A path with a scheme such as `s3://` is remote. Errors of local paths are `OSError`; errors of
remote paths are `UnreadableError` with a remedy. fsspec is slow to import, so it is imported with
the first remote path; its connections are not stored here, because they must not survive a fork.
"""

import errno
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from stepscope.base import urls
from stepscope.storage import local
from stepscope.storage.listing import FileStamp, Listing, NameFilter, names_only

__all__ = [
    "ChangedFileError",
    "FileStamp",
    "Listing",
    "exists",
    "files_in",
    "is_folder",
    "open_binary",
    "open_unchanged",
    "open_with_stamp",
    "real_path",
    "similar_paths",
    "stamp",
    "walk",
]


class ChangedFileError(OSError):
    """A file is no longer the one that was read."""


class _System(Protocol):
    def stamp(self, path: str) -> FileStamp: ...
    def open_binary(self, path: str) -> BinaryIO: ...
    def open_with_stamp(self, path: str) -> tuple[BinaryIO, FileStamp]: ...
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
    """Return a file's size and modification time.

    Raises:
        OSError: The file cannot be opened, or is not a regular file (a pipe would block).
        UnreadableError: The same for a remote file.
    """
    return _of(path).stamp(path)


def open_binary(path: str) -> BinaryIO:
    """Open a file for sequential reading; a remote file is fetched in blocks.

    Raises:
        OSError: The file cannot be opened, or is not a regular file; reading may also raise it.
        UnreadableError: The same for a remote file.
    """
    return _of(path).open_binary(path)


def open_with_stamp(path: str) -> tuple[BinaryIO, FileStamp]:
    """Open a file as `open_binary` does, and return the stamp of the opened file."""
    return _of(path).open_with_stamp(path)


def open_unchanged(path: str, stamp: FileStamp) -> BinaryIO:
    """Open a file as `open_binary` does, if it is the file with this stamp.

    Raises:
        ChangedFileError: It was changed or replaced, such as by a link to another file.
        OSError: The file cannot be opened, or is not a regular file; reading may also raise it.
        UnreadableError: The same for a remote file.
    """
    stream, now = open_with_stamp(path)
    if now.is_same_file(stamp):
        return stream
    stream.close()
    raise ChangedFileError(errno.ESTALE, "it has changed since it was read", path)


def walk(root: str, needs_stamp: NameFilter = names_only) -> Iterator[Listing]:
    """Yield the folders under `root` with their files, page by page.

    A large folder has several pages, remote pages arrive in any order, and pages may be empty.
    Links are followed once. Local folders that cannot be listed are skipped, as are folders whose
    names begin with a dot. Stamps are included for local files that need them, and for all remote
    files.

    Raises:
        UnreadableError: Remote storage refuses to list the folder, or stops responding.
    """
    return _of(root).walk(root, needs_stamp)


def files_in(folder: str) -> Iterator[Listing]:
    """Yield the files of one folder without its subfolders, page by page.

    Raises:
        UnreadableError: Remote storage refuses to list the folder.
    """
    return _of(folder).files_in(folder)


def is_folder(path: str) -> bool:
    """Return whether `path` is a folder; False for local paths that cannot be opened.

    Raises:
        UnreadableError: Remote storage does not respond.
    """
    return _of(path).is_folder(path)


def exists(path: str) -> bool:
    """Return whether `path` exists.

    Raises:
        OSError: The name is too long, or a folder is not accessible.
        UnreadableError: Remote storage does not respond.
    """
    return _of(path).exists(path)


def real_path(path: str) -> str:
    """Return the path without links; a circular link is returned unchanged."""
    return _of(path).real_path(path)


def similar_paths(path: str) -> list[str]:
    """Return up to three local paths with a name like that of a missing one, or of its folder."""
    return [] if urls.is_remote(path) else local.similar_paths(path)
