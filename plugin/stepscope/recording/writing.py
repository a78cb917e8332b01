"""A trace file is written under another name, completed, and then renamed.

A process that is killed, and a disk that is full, so never leave half a file under a trace's name:
an unfinished file ends in `.partial`, which neither stepscope nor TensorBoard reads.

torch's exporter raises nothing where it cannot write (torch 2.13: it logs one line, and with gzip
leaves an empty file): its output is checked.
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
"""The file's last key is within so many bytes of its end; a path and a few words are before it."""
CHUNK_BYTES = 1024 * 1024
GZIP_LEVEL = 6
"""torch takes 9: for a trace that needs twice the time, and saves 2 % of the bytes."""
MEBIBYTE = 1024 * 1024
TEXT_OR_BRACE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]')
DEPTH = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}

Export = Callable[[str], object]


class IncompleteError(OSError):
    """torch wrote no file, or a part of one, and did not say why."""


def write(path: Path, export: Export, key: str, value: str | None) -> bool:
    """Write a trace file with one more top-level key, or none at all.

    Args:
        path: Where it goes; with a name in `.gz`, compressed.
        export: Function that writes a trace, as JSON, to a path.
        key: The key's name.
        value: Its value, as JSON; None for none.

    Returns:
        Whether the file holds the key: it is not put into a trace whose end is not understood.

    Raises:
        OSError: it could not be written; nothing is left behind.
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
    """Make the folder and the file, so that a refusal raises with its reason."""
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
    """Give the path to write JSON to: one in the system's temporary folder if it is compressed."""
    if path.suffix != ".gz":
        yield partial
        return
    with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
        yield Path(folder, path.stem)


def _complete(plain: Path, path: Path, key: str, value: str | None) -> bool:
    """Put the key before the file's end, and the file's own name where torch wrote another."""
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
    """Return whether a trace came to its end: torch's exporters write its name behind all events.

    A file that was cut ends, as likely as not, behind an event's brace. One without a name may be
    a later torch's: there all braces are counted.
    """
    end = tail.rstrip()
    if not end.endswith((b"}", b"]")):
        return False
    return b'"traceName":' in end or _is_balanced(file)


def _is_balanced(file: BinaryIO) -> bool:
    """Return whether all braces and brackets of a JSON text are closed; text in quotes is none."""
    depth = 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for match in TEXT_OR_BRACE.finditer(content):
            depth += DEPTH.get(match[0], 0)
    return depth == 0


def _renamed(end: bytes, plain: Path, path: Path) -> bytes:
    """Return a file's last bytes with its name where torch wrote a path, which tells of users."""
    at = end.rfind(b'"traceName":')
    if at < 0:
        return end
    return end[:at] + end[at:].replace(os.fsencode(str(plain)), os.fsencode(path.name))


def _compress(plain: Path, partial: Path) -> None:
    with plain.open("rb") as read, gzip.open(partial, "wb", compresslevel=GZIP_LEVEL) as written:
        shutil.copyfileobj(read, written, CHUNK_BYTES)
