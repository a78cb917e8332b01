"""Files that somebody asked for by name: there as a whole, or as they were before."""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

COMPRESSION = 6
"""As kineto's files have; a higher level takes far longer and saves a tenth."""


@contextmanager
def atomic_output(path: str) -> Iterator[BinaryIO]:
    """Open a local file for writing; where its name ends in `.gz`, what is written is compressed.

    It takes the place of one of that name when the context is left without an error. What is no
    file (a device, a pipe) is written to as it is.

    Raises:
        OSError: it cannot be written there.
    """
    with _whole(path) as stream:
        if path.endswith(".gz"):
            with gzip.GzipFile("", "wb", COMPRESSION, stream, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield stream


@contextmanager
def _whole(path: str) -> Iterator[BinaryIO]:
    given = Path(path)
    if given.exists() and not given.is_file():
        with given.open("wb") as stream:
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
