"""Files of our own in one folder of this machine: written as a whole, removed when there are many.

Two programs may use the folder at once: a file is there as a whole or not at all.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o700
UNFINISHED = ".part"
UNFINISHED_SECONDS = 3600
"""A file that was not finished after that never will be: its writer was killed."""


def write(folder: str, name: str, *parts: bytes | memoryview) -> None:
    """Put a file of these parts into the folder, in place of one of that name.

    Raises:
        OSError: there is no room, or the folder cannot be made or written to; nothing is left.
    """
    Path(folder).mkdir(mode=PRIVATE, parents=True, exist_ok=True)
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
    """Return what is in a file, and note that it was used now.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    path = Path(folder, name)
    content = path.read_bytes()
    with suppress(OSError):
        os.utime(path)
    return content


def remove(folder: str, name: str) -> None:
    """Remove a file; one that is not there, or cannot be removed, is left."""
    with suppress(OSError):
        Path(folder, name).unlink()


def bound(folder: str, pattern: str, bound_bytes: int) -> None:
    """Remove files that match a pattern, those used least lately first, until the rest fits.

    The pattern may name folders, too (`*/*.columns`). What was left unfinished beside such files
    by somebody who was killed goes, too; nothing else is touched.
    """
    oldest = time.time() - UNFINISHED_SECONDS
    for path in Path(folder).glob(str(Path(pattern).with_name(f"*{UNFINISHED}"))):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
    found: list[tuple[int, int, Path]] = []
    for path in Path(folder).glob(pattern):
        with suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= bound_bytes:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


def user_cache_folder() -> str:
    """Return the folder of this user in which programs keep what they can make again."""
    import platformdirs

    return platformdirs.user_cache_dir("stepscope", appauthor=False)
