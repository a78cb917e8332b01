"""A recording as a file, and what else on this machine can open it."""

import msgspec

from stepscope.api import perfetto
from stepscope.api.downloads import part_file, whole_file
from stepscope.api.endpoint import (
    Binary,
    Bytes,
    CatalogEndpoint,
    Query,
    TimeRangeQuery,
    TraceEndpoint,
)
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.model.trace import Trace


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
