"""Writing of a trace file under a temporary name, which is renamed when complete.

A killed process or a full disk thus never leaves an incomplete file under a trace's name: an
unfinished file ends in `.partial`, which neither stepscope nor TensorBoard reads.

torch's exporter does not raise if it cannot write (torch 2.13 logs one line, and with gzip leaves
an empty file): its output is checked.
"""

import gzip
import json
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
TAIL_BYTES = 64 * 1024
"""The file's last key lies in this many bytes at the end; a path and a few words precede it."""
CHUNK_BYTES = 1024 * 1024
GZIP_LEVEL = 6
"""torch uses 9, which takes twice as long for a trace and saves 2 % of the bytes."""
MEBIBYTE = 1024 * 1024
TEXT_OR_BRACE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]')
DEPTH = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}

Export = Callable[[str], object]


class IncompleteError(OSError):
    """torch wrote no file or an incomplete one, without reporting why."""


def write(path: Path, export: Export, key: str, value: str | None) -> bool:
    """Write a trace file with one additional top-level key.

    Args:
        path: The file; compressed if its name ends in `.gz`.
        export: Function that writes a trace, as JSON, to a path.
        key: The key's name.
        value: Its value, as JSON; None to add no key.

    Returns:
        Whether the file contains the key: it is not inserted into a trace with an unrecognized end.

    Raises:
        OSError: The file could not be written; no partial file remains.
    """
    partial = path.with_name(path.name + PARTIAL)
    with _removed(partial):
        _create(partial)
        with _plain_path(path, partial) as plain:
            export(str(plain))
            is_added = _complete(plain, path, key, value)
            if plain != partial:
                _compress(plain, partial)
        partial.replace(path)
    return is_added


def _create(partial: Path) -> None:
    """Create the folder and the file, so that a permission error raises with its reason."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.open("wb").close()


@contextmanager
def _removed(partial: Path) -> Iterator[None]:
    """Remove partial files on exit; kineto writes to a `.tmp`."""
    try:
        yield
    finally:
        for left in (partial, partial.with_name(partial.name + ".tmp")):
            with suppress(OSError):
                left.unlink()


@contextmanager
def _plain_path(path: Path, partial: Path) -> Iterator[Path]:
    """Yield the path for the JSON: in the system's temporary folder if it is to be compressed."""
    if path.suffix != ".gz":
        yield partial
        return
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        yield Path(folder, path.stem)


def _complete(plain: Path, path: Path, key: str, value: str | None) -> bool:
    """Insert the key before the file's end, and the file's own name if torch wrote another."""
    try:
        size = plain.stat().st_size
    except FileNotFoundError:
        size = 0
    with plain.open("r+b") if size else _nothing(plain) as file:
        tail, start = _tail(file, size)
        if not _is_whole(file, tail):
            raise _incomplete(plain)
        end = tail.rstrip()
        if value is None or not end.endswith(b"}"):
            return False
        named = _renamed(end[:-1].rstrip(), plain, path)
        more = f",\n  {json.dumps(key)}: {value}\n}}\n"
        file.seek(start)
        file.truncate()
        file.write(named + more.encode("utf-8", "replace"))
    return True


def _nothing(plain: Path) -> BinaryIO:
    raise _incomplete(plain)


def _incomplete(plain: Path) -> IncompleteError:
    free = ""
    with suppress(OSError):
        free = f" ({shutil.disk_usage(plain.parent).free // MEBIBYTE} MiB are free there)"
    return IncompleteError(f"torch could not write the whole trace to {plain.parent}{free}")


def _tail(file: BinaryIO, size: int) -> tuple[bytes, int]:
    start = max(size - TAIL_BYTES, 0)
    file.seek(start)
    return file.read(), start


def _is_whole(file: BinaryIO, tail: bytes) -> bool:
    """Return whether a trace is complete: torch's exporters write its name after all events.

    A truncated file may well end after an event's brace. A file without a name may come from a
    later torch: then all braces are counted.
    """
    end = tail.rstrip()
    if not end.endswith((b"}", b"]")):
        return False
    return b'"traceName":' in end or _is_balanced(file)


def _is_balanced(file: BinaryIO) -> bool:
    """Return whether all braces and brackets of a JSON text are closed, ignoring quoted text."""
    depth = 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for match in TEXT_OR_BRACE.finditer(content):
            depth += DEPTH.get(match[0], 0)
    return depth == 0


def _renamed(end: bytes, plain: Path, path: Path) -> bytes:
    """Return a file's last bytes with the file's name instead of torch's path, which is private."""
    at = end.rfind(b'"traceName":')
    if at < 0:
        return end
    return end[:at] + end[at:].replace(os.fsencode(str(plain)), os.fsencode(path.name))


def _compress(plain: Path, partial: Path) -> None:
    with plain.open("rb") as read, gzip.open(partial, "wb", compresslevel=GZIP_LEVEL) as written:
        shutil.copyfileobj(read, written, CHUNK_BYTES)
