"""Files that a response sends in pieces."""

import gzip
from collections.abc import Callable, Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

PIECE_BYTES = 1 << 20
MOST_IN_MEMORY_BYTES = 64 << 20
"""Limit of a written file in memory; a larger one is a temporary file."""
FASTEST = 1
"""gzip level: a download is opened once, so speed matters more than size."""


def packed(write: Callable[[BinaryIO], object]) -> Iterator[bytes]:
    """Return what a function writes, gzipped."""
    sink = cast("BinaryIO", SpooledTemporaryFile(max_size=MOST_IN_MEMORY_BYTES))  # noqa: SIM115
    try:
        with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=FASTEST, mtime=0) as packing:
            write(cast("BinaryIO", packing))
    except BaseException:
        sink.close()
        raise
    sink.seek(0)
    return pieces(sink)


def pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Yield a file's content, and close it."""
    with stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece
