"""Files of our own in a folder, of this machine or remote: written as a whole, read as a whole.

Several programs may use a folder at once: an object is there as a whole or not at all, and one that
another program has removed is not there any more. What is wrong with a local folder is an
`OSError`, with a remote one an `UnreadableError`.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from stepscope.base import urls
from stepscope.storage import cache_folder, local
from stepscope.storage.file_stamp import FileStamp


def listed(folder: str) -> dict[str, FileStamp]:
    """Return what is in a folder, by name; nothing where there is none."""
    if urls.is_remote(folder):
        return _remote_listed(folder)
    found: dict[str, FileStamp] = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in Path(folder).iterdir():
            with suppress(OSError):  # it went meanwhile, or is no file
                found[path.name] = local.stamp(str(path))
    return found


def read(folder: str, name: str) -> bytes | None:
    """Return what is in an object; None where it is not there any more.

    A local one is marked as used now.
    """
    if urls.is_remote(folder):
        return _remote_read(urls.join(folder, name))
    try:
        return cache_folder.read(folder, name)
    except FileNotFoundError:
        return None


def write(folder: str, name: str, content: bytes) -> None:
    """Put an object into a folder, which is made where there is none."""
    if not urls.is_remote(folder):
        cache_folder.write(folder, name, content)
        return
    from stepscope.storage import remote

    with remote.open_system(urls.join(folder, name)) as (system, inside):
        system.pipe_file(inside, content, **remote.timeout_options(system, remote.LISTING_SECONDS))


def remove(folder: str, names: Iterable[str]) -> None:
    """Remove objects; one that is not there, or cannot be removed, is left."""
    for name in names:
        if urls.is_remote(folder):
            _remote_remove(urls.join(folder, name))
        else:
            cache_folder.remove(folder, name)


def _remote_listed(folder: str) -> dict[str, FileStamp]:
    from stepscope.storage import error_messages, remote

    with remote.open_system(folder) as (system, inside):
        try:
            found = system.ls(
                inside, detail=True, **remote.timeout_options(system, remote.LISTING_SECONDS)
            )
        except Exception as error:
            if error_messages.is_absence(folder, error):
                return {}
            raise
    files = (each for each in found if each.get("type") == "file")
    return {each["name"].rpartition("/")[2]: remote.stamp_of(each) for each in files}


def _remote_read(path: str) -> bytes | None:
    from stepscope.storage import error_messages, remote

    with remote.open_system(path) as (system, inside):
        try:
            content: bytes = system.cat_file(
                inside, **remote.timeout_options(system, remote.LISTING_SECONDS)
            )
        except Exception as error:
            if error_messages.is_absence(path, error):
                return None
            raise
    return content


def _remote_remove(path: str) -> None:
    from stepscope.base.errors import UnreadableError
    from stepscope.storage import remote

    with (
        suppress(UnreadableError, OSError),
        remote.open_system(path) as (system, inside),
    ):
        system.rm_file(inside)
