"""Trace files to take along: a recording's own file, or a part of it as a trace of its own."""

import gzip
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from stepscope import storage
from stepscope.analyses.core.trace_cut import cut
from stepscope.api.endpoint import Binary
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.model.trace import Trace
from stepscope.render import trace_excerpt

PIECE_BYTES = 1 << 20
MOST_IN_MEMORY_BYTES = 64 << 20
"""Of a part that is written; more goes to a temporary file."""
FASTEST = 1
"""gzip's level: it is opened at once, and kept by few."""


def whole_file(trace: Trace) -> Binary:
    """Return a recording's file as it lies on disk, damage and all.

    Raises:
        UnreadableError: it cannot be opened any more.
    """
    return Binary(body=_pieces(_opened(trace)), file_name=urls.name(trace.path))


def part_file(trace: Trace, start_ns: int, end_ns: int) -> Binary:
    """Return what runs in `[start_ns, end_ns)` as a trace, gzipped, with what was damaged repaired.

    Raises:
        UnreadableError: the recording's file cannot be read again.
    """
    sink = cast("BinaryIO", SpooledTemporaryFile(max_size=MOST_IN_MEMORY_BYTES))  # noqa: SIM115
    try:
        with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=FASTEST, mtime=0) as packed:
            trace_excerpt.write_events(
                trace, cut(trace, start_ns, end_ns), cast("BinaryIO", packed)
            )
    except BaseException as error:
        sink.close()
        if isinstance(error, OSError):
            raise _unreadable(trace, error) from error
        raise
    sink.seek(0)
    return Binary(body=_pieces(sink), file_name=_part_name(trace, start_ns, end_ns))


def _opened(trace: Trace) -> BinaryIO:
    try:
        return storage.open_binary(trace.path)
    except OSError as error:
        raise _unreadable(trace, error) from error


def _unreadable(trace: Trace, error: OSError) -> UnreadableError:
    return UnreadableError(
        trace.path,
        f"the file cannot be read again: {error.strerror or error}",
        "It may have been moved or deleted since; reload the page to look for it.",
    )


def _part_name(trace: Trace, start_ns: int, end_ns: int) -> str:
    stem = f"{trace.worker}_{start_ns}-{end_ns}"
    return f"{stem}.{trace.span}.pt.trace.json.gz"


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece
