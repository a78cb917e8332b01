"""Downloads of traces, and other tools on this machine that open them."""

from stepscope import storage
from stepscope.analyses.core.trace_cut import cut
from stepscope.api import http_errors, perfetto
from stepscope.api.endpoint import (
    Binary,
    Bytes,
    Query,
    TimeRangeQuery,
    catalog_endpoint,
    trace_endpoint,
)
from stepscope.api.messages import Response
from stepscope.api.packed_files import packed, pieces
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.catalog.catalog import Catalog
from stepscope.model.trace import Trace
from stepscope.render import trace_excerpt


def whole_file(trace: Trace) -> Binary:
    """Return a trace's file unchanged.

    Raises:
        RefusalError: the file was changed or replaced since it was read.
        UnreadableError: the file cannot be opened any more.
    """
    try:
        stream = trace_excerpt.open_again(trace)
    except OSError as error:
        raise _refusal(trace, error) from error
    return Binary(body=pieces(stream), file_name=urls.name(trace.path))


def part_file(trace: Trace, start_ns: int, end_ns: int) -> Binary:
    """Return the events of `[start_ns, end_ns)` as a gzipped trace, with damage repaired.

    Raises:
        RefusalError: the file was changed or replaced since it was read.
        UnreadableError: the trace's file cannot be read again.
    """
    span = cut(trace, start_ns, end_ns)
    try:
        body = packed(lambda sink: trace_excerpt.write_events(trace, span, sink))
    except OSError as error:
        raise _refusal(trace, error) from error
    return Binary(body=body, file_name=_part_name(trace, start_ns, end_ns))


def _refusal(trace: Trace, error: OSError) -> Exception:
    if isinstance(error, storage.ChangedFileError):
        return http_errors.changed(urls.name(trace.path))
    return UnreadableError(
        trace.path,
        f"the file cannot be read again: {error.strerror or error}",
        "It may have been moved or deleted. Reload the page to scan again.",
    )


def _part_name(trace: Trace, start_ns: int, end_ns: int) -> str:
    stem = f"{trace.worker}_{start_ns}-{end_ns}"
    return f"{stem}.{trace.span}.pt.trace.json.gz"


class Download(TimeRangeQuery, frozen=True, kw_only=True):
    """The part of the trace, and its form."""

    is_repaired: bool = False
    """Write valid JSON without crossing ranges from the readable events; a part always is."""


class Tools(Response, frozen=True, kw_only=True):
    """Other installed tools that open traces."""

    perfetto: str
    """Relative URL of Perfetto's page; empty where the extra is not installed."""
    perfetto_hint: str
    """The command that installs it."""


def file(trace: Trace, query: Download) -> Binary:
    """Return the trace's file, or a time range of it as a trace."""
    if query.start_ns is not None and query.end_ns is not None:
        return part_file(trace, query.start_ns, query.end_ns)
    if not query.is_repaired:
        return whole_file(trace)
    timed_ns = trace.columns.start_ns
    return part_file(trace, 0, max(1, int(timed_ns.max(initial=0)) + 1))


def tools(_: Catalog, __: Query) -> Tools:
    """Return the installed tools that open traces."""
    return Tools(
        perfetto=perfetto.ADDRESS if perfetto.folder() is not None else "",
        perfetto_hint=perfetto.HINT,
    )


CHROME_TRACE = Bytes("application/octet-stream", "A Chrome trace, mostly gzipped.")
ENDPOINTS = (
    trace_endpoint("file", file, response=CHROME_TRACE, is_whole=True),
    catalog_endpoint("tools", tools),
)
