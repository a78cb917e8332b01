"""Small files in a local or remote folder, written and read as a whole.

Several programs may use a folder at once: writes are atomic, and files may be removed at any time.
Errors of local folders are `OSError`, of remote ones `UnreadableError`.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.storage import cache_folder, local
from stepscope.storage.listing import FileStamp


def listed(folder: str) -> dict[str, FileStamp]:
    """Return the files of a folder by name; empty for a missing folder."""
    if urls.is_remote(folder):
        return _remote_listed(folder)
    files: dict[str, FileStamp] = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in Path(folder).iterdir():
            with suppress(OSError):  # removed meanwhile, or not a file
                files[path.name] = local.stamp(str(path))
    return files


def read(folder: str, name: str) -> bytes | None:
    """Return the content of a file, or None if it is missing; mark a local one as used now."""
    if urls.is_remote(folder):
        return _remote_read(urls.join(folder, name))
    try:
        return cache_folder.read(folder, name)
    except FileNotFoundError:
        return None


def write(folder: str, name: str, content: bytes) -> None:
    """Write a file; a missing folder is created."""
    if not urls.is_remote(folder):
        cache_folder.write(folder, name, content)
        return
    from stepscope.storage import remote

    with remote.open_system(urls.join(folder, name)) as (system, path):
        system.pipe_file(path, content, **remote.timeout_options(system, remote.LISTING_SECONDS))


def remove(folder: str, names: Iterable[str]) -> None:
    """Remove files that exist and can be removed."""
    for name in names:
        if urls.is_remote(folder):
            _remote_remove(urls.join(folder, name))
        else:
            cache_folder.remove(folder, name)


def _remote_listed(folder: str) -> dict[str, FileStamp]:
    from stepscope.storage import error_messages, remote

    with remote.open_system(folder) as (system, path):
        options = remote.timeout_options(system, remote.LISTING_SECONDS)
        try:
            infos = system.ls(path, detail=True, **options)
        except Exception as error:
            if error_messages.is_absence(folder, error):
                return {}
            raise
    files = (info for info in infos if info.get("type") == "file")
    return {info["name"].rpartition("/")[2]: remote.stamp_of(info) for info in files}


def _remote_read(url: str) -> bytes | None:
    from stepscope.storage import error_messages, remote

    with remote.open_system(url) as (system, path):
        options = remote.timeout_options(system, remote.LISTING_SECONDS)
        try:
            content: bytes = system.cat_file(path, **options)
        except Exception as error:
            if error_messages.is_absence(url, error):
                return None
            raise
    return content


def _remote_remove(url: str) -> None:
    from stepscope.storage import remote

    with suppress(UnreadableError, OSError), remote.open_system(url) as (system, path):
        system.rm_file(path)
