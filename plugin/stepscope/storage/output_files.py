"""Atomic output files: either complete or unchanged."""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

COMPRESSION = 6
"""The level of kineto's files; higher levels take far longer and save a tenth."""


@contextmanager
def atomic_output(path: str) -> Iterator[BinaryIO]:
    """Open a local file for writing, compressed if its name ends in `.gz`.

    It replaces an existing file when the context ends without an error. A device or pipe is written
    to directly.

    Raises:
        OSError: The file cannot be written.
    """
    with _atomic(path) as stream:
        if path.endswith(".gz"):
            with gzip.GzipFile("", "wb", COMPRESSION, stream, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield stream


@contextmanager
def _atomic(path: str) -> Iterator[BinaryIO]:
    if Path(path).exists() and not Path(path).is_file():
        with Path(path).open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        with unfinished.open("xb") as stream:
            yield stream
        unfinished.replace(target)
    except OSError as error:
        if error.filename != str(unfinished):
            raise
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        unfinished.unlink(missing_ok=True)
