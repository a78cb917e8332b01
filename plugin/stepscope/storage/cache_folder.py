"""Cache files in a local folder, written atomically and bounded in size, with content checks.

Several programs may use a folder at once. The user's own folder is used only if no other user can
write to it: its files decide what is shown. A folder that the user names may be shared.
"""

import errno
import os
import stat
import time
from contextlib import suppress
from functools import cache
from logging import Logger
from pathlib import Path

from stepscope.storage import local

PRIVATE = 0o700
UNFINISHED = ".part"
UNFINISHED_SECONDS = 3600
"""Age after which an unfinished file is considered left over from a killed program."""


class DamagedError(Exception):
    """The content of a cache file is invalid."""


def require(condition: bool, message: str) -> None:  # noqa: FBT001 (reads as an assertion)
    """Check the content of a cache file.

    Raises:
        DamagedError: The condition is false.
    """
    if not condition:
        raise DamagedError(message)


@cache
def warn_once(log: Logger, message: str) -> None:
    """Log a warning once per process, regardless of the number of files that cause it."""
    log.warning("%s", message)


def write(folder: str, name: str, *parts: bytes | memoryview) -> None:
    """Write a file from parts, replacing an existing file of that name.

    Raises:
        OSError: The disk is full, the folder cannot be created or is not writable, or it is the
            user's own and others can write to it.
    """
    with suppress(ImportError):  # `mode` is of the last folder only
        if Path(folder).is_relative_to(root := user_cache_folder()):
            Path(root).mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    Path(folder).mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    _require_private(folder)
    unfinished = Path(folder, f"{name}.{os.urandom(8).hex()}{UNFINISHED}")
    try:
        with unfinished.open("xb") as stream:
            for part in parts:
                stream.write(part)
        unfinished.replace(Path(folder, name))
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def read(folder: str, name: str) -> bytes:
    """Return the content of a file, and mark it as used now.

    Raises:
        OSError: The file does not exist, cannot be read, or is not a regular file, or the folder is
            the user's own and others can write to it.
    """
    path = Path(folder, name)
    with local.open_binary(str(path)) as stream:
        _require_private(folder)
        content = stream.read()
    with suppress(OSError):
        os.utime(path)
    return content


def remove(folder: str, name: str) -> None:
    """Remove a file, if it exists and can be removed."""
    with suppress(OSError):
        Path(folder, name).unlink()


def bound(folder: str, pattern: str, bound_bytes: int) -> None:
    """Remove files that match a pattern, least recently used first, until the rest fits.

    The pattern may include folders (`*/*.columns`). Old unfinished files in these folders are also
    removed.
    """
    oldest = time.time() - UNFINISHED_SECONDS
    for path in Path(folder).glob(str(Path(pattern).with_name(f"*{UNFINISHED}"))):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
    files: list[tuple[int, int, Path]] = []
    for path in Path(folder).glob(pattern):
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= bound_bytes:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


def _require_private(folder: str) -> None:
    """Check that no other user can write to the user's own cache folder.

    Raises:
        PermissionError: Another user owns it, or its group or all users may write to it.
    """
    try:
        root = Path(user_cache_folder())
    except ImportError:  # then every folder is one that the user named
        return
    if os.name == "nt" or not Path(folder).is_relative_to(root):
        return
    for path in {root, Path(folder)}:
        status = path.stat()
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            message = f"other users can write to {path}: delete it, and a private one is created"
            raise PermissionError(errno.EPERM, message, str(path))


def user_cache_folder() -> str:
    """Return the user's cache folder of stepscope."""
    import platformdirs

    return platformdirs.user_cache_dir("stepscope", appauthor=False)
