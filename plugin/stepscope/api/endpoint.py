"""Endpoints of the API: a path, a handler, and the types of its parameters and its response.

A module `endpoints/<name>.py` lists the endpoints of one subject in `ENDPOINTS`; routes, the
OpenAPI document and the page's types follow from them. An endpoint reads one trace, parts of
several traces, or the catalog.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from stepscope.advice import AdviceSettings, TraceAdvice
from stepscope.api.computations import Lane
from stepscope.base.report import Problem
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.model.trace import Trace


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of an endpoint: names in its path and after the `?`.

    A subclass adds fields; a field without a default is required. The docstrings of the fields are
    the descriptions of the parameters.
    """


class TimeRangeQuery(Query, frozen=True, kw_only=True):
    """A time range of the trace; both bounds, or neither for the whole trace."""

    start_ns: int | None = None
    """Start of the time range, in ns from the trace's first event."""
    end_ns: int | None = None
    """End of the time range, exclusive."""

    def __post_init__(self) -> None:
        """Refuse a single bound and an empty range."""
        start_ns, end_ns = self.start_ns, self.end_ns
        if (start_ns is None) != (end_ns is None):
            msg = "start_ns and end_ns must be given together"
            raise ValueError(msg)
        if start_ns is not None and end_ns is not None and start_ns >= end_ns:
            msg = "start_ns must be before end_ns"
            raise ValueError(msg)


class RunQuery(Query, frozen=True, kw_only=True):
    """The run."""

    run: str
    """The run's id."""


QueryT = TypeVar("QueryT", bound=Query)
PartT = TypeVar("PartT")


@dataclass(frozen=True, kw_only=True)
class Binary:
    """A response of bytes: tiles of the timeline, a file to download."""

    body: bytes | Iterable[bytes]
    """All bytes, or pieces that are sent as they are produced."""
    file_name: str = ""
    """Name of a download."""


@dataclass(frozen=True)
class Bytes:
    """Type of a `Binary` response: media type and meaning."""

    media_type: str
    meaning: str


ResponseType = type[msgspec.Struct] | Bytes
Message = msgspec.Struct | Binary


@dataclass(frozen=True, kw_only=True)
class TraceEndpoint(Generic[QueryT]):
    """An endpoint of one trace; its path begins with `traces/<trace>/`.

    With a `TimeRangeQuery` that has bounds, the handler receives the trace clipped to them
    (`core.trace_cut`), unless `is_whole`: then it receives the whole trace and applies the range
    itself. A handler of three arguments receives the settings of the run's advice, too, or the
    advice on the trace.
    """

    path: str
    meaning: str
    response: ResponseType
    handler: Callable[..., Message]
    """Function of the trace, the settings or the advice if it has them, and the query."""
    query: type[QueryT] = Query  # type: ignore[assignment]
    is_whole: bool = False
    has_settings: bool = False
    """Whether the handler receives the settings of advice."""
    has_advice: bool = False
    """Whether the handler receives the advice on the trace."""
    lane: Lane = "long"


@dataclass(frozen=True, kw_only=True)
class Group(Generic[PartT]):
    """Parts of several traces: of a run, or of one side of a comparison."""

    name: str
    parts: Sequence[PartT]
    traces: Sequence[str] = ()
    """Ids of the traces."""
    waiting_count: int = 0
    """Traces that are not read yet; they may change the result."""
    problems: Sequence[Problem] = ()
    """Problems of the traces that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class GroupsEndpoint(Generic[PartT, QueryT]):
    """An endpoint of several traces.

    `part` extracts a small summary of one trace, which is cached after its events are released and
    shared by all endpoints with the same function. `entries` selects the traces of each group.
    """

    path: str
    meaning: str
    response: ResponseType
    part: Callable[[Trace], PartT]
    entries: Callable[[Catalog, QueryT], Mapping[str, tuple[Entry, ...]]]
    handler: Callable[[Mapping[str, Group[PartT]], QueryT], Message]
    query: type[QueryT] = Query  # type: ignore[assignment]
    needs_all: bool = True
    """False: it responds as soon as one group has a part."""
    lane: Lane = "long"


@dataclass(frozen=True, kw_only=True)
class CatalogEndpoint(Generic[QueryT]):
    """An endpoint of the catalog: runs, traces and their states."""

    path: str
    meaning: str
    response: ResponseType
    handler: Callable[[Catalog, QueryT], Message]
    query: type[QueryT] = Query  # type: ignore[assignment]
    lane: Lane | None = None
    """None: it responds at once."""


Endpoint = TraceEndpoint[Any] | GroupsEndpoint[Any, Any] | CatalogEndpoint[Any]


def trace_endpoint(
    path: str,
    handler: Callable[..., Message],
    *,
    response: Bytes | None = None,
    is_whole: bool = False,
    lane: Lane = "long",
) -> TraceEndpoint[Any]:
    """Return an endpoint of one trace, described by its handler (see `signature`)."""
    meaning, query, returned = signature(handler)
    parameters = get_type_hints(handler).values()
    return TraceEndpoint(
        path=path,
        meaning=meaning,
        response=response or returned,
        handler=handler,
        query=query,
        is_whole=is_whole,
        has_settings=AdviceSettings in parameters,
        has_advice=TraceAdvice in parameters,
        lane=lane,
    )


def catalog_endpoint(
    path: str, handler: Callable[[Catalog, Any], Message], *, lane: Lane | None = None
) -> CatalogEndpoint[Any]:
    """Return an endpoint of the catalog, described by its handler (see `signature`)."""
    meaning, query, returned = signature(handler)
    return CatalogEndpoint(
        path=path, meaning=meaning, response=returned, handler=handler, query=query, lane=lane
    )


def signature(handler: Callable[..., Message]) -> tuple[str, type[Query], type[msgspec.Struct]]:
    """Return the first line of a handler's docstring, its query's type, and its result's type.

    The query is the last argument.
    """
    hints = get_type_hints(handler)
    returned = hints.pop("return")
    return (inspect.getdoc(handler) or "").partition("\n")[0], [*hints.values()][-1], returned


def address(endpoint: Endpoint) -> str:
    """Return an endpoint's path below `api/`, with its parameters in angle brackets.

    `<path:name>` accepts slashes.
    """
    prefix = "traces/<trace>/" if isinstance(endpoint, TraceEndpoint) else ""
    return prefix + endpoint.path


def run_entries(catalog: Catalog, query: Any) -> Mapping[str, tuple[Entry, ...]]:  # noqa: ANN401
    """Return the traces of a `RunQuery`'s run, under the run's id."""
    return {query.run: catalog.run(query.run)}


@cache
def all_endpoints() -> tuple[Endpoint, ...]:
    """Return all endpoints of `endpoints/`, in the order of their files."""
    package = f"{__package__}.endpoints"
    folder = import_module(package).__path__
    names = sorted(module.name for module in iter_modules(folder) if module.name[0] != "_")
    modules = [import_module(f"{package}.{name}") for name in names]
    return tuple(endpoint for module in modules for endpoint in module.ENDPOINTS)
