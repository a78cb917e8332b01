"""What an endpoint of the API is: a path, its parameters and its answer as types, and who answers.

`endpoints/<name>.py` holds them, a subject a file, in a tuple `ENDPOINTS`; routes, the OpenAPI
document and the page's types all follow from that. Three kinds differ in what they are asked of:
one recording; what several recordings say together; or the catalog itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

import msgspec

from stepscope.base.report import Problem
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.model.trace import Trace


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of an endpoint: names in its path, and those behind the `?`.

    A subclass adds fields; what has no default must be given. Their docstrings are their meaning.
    """


class TimeRangeQuery(Query, frozen=True, kw_only=True):
    """Parameters of what can be asked of a part of the recording; both bounds, or neither."""

    start_ns: int | None = None
    """From when, in ns from the trace's first event."""
    end_ns: int | None = None
    """Until when; not itself in it."""

    def __post_init__(self) -> None:
        """Refuse half a time and an empty one."""
        start_ns, end_ns = self.start_ns, self.end_ns
        if (start_ns is None) != (end_ns is None):
            msg = "start_ns and end_ns are given together"
            raise ValueError(msg)
        if start_ns is not None and end_ns is not None and start_ns >= end_ns:
            msg = "end_ns lies behind start_ns"
            raise ValueError(msg)


QueryT = TypeVar("QueryT", bound=Query)
PartT = TypeVar("PartT")


@dataclass(frozen=True, kw_only=True)
class Binary:
    """An answer that is bytes: tiles of the timeline, a file to download."""

    body: bytes | Iterable[bytes]
    """All of it, or pieces that are sent as they come."""
    file_name: str = ""
    """Of a download."""


@dataclass(frozen=True)
class Bytes:
    """In place of an answer's type, where it is `Binary`: its media type and what the bytes are."""

    media_type: str
    meaning: str


ResponseType = type[msgspec.Struct] | Bytes


@dataclass(frozen=True, kw_only=True)
class TraceEndpoint(Generic[QueryT]):
    """Asked of one recording; its path begins with `traces/<trace>/`.

    Where `query` is an `InTime` and a time was given, `ask` gets the recording narrowed to it
    (`core.trace_cut`), unless `is_whole`: then it gets all of it and minds the time itself.
    """

    path: str
    meaning: str
    response: ResponseType
    handler: Callable[[Trace, QueryT], msgspec.Struct | Binary]
    query: type[QueryT] = Query  # type: ignore[assignment]
    is_whole: bool = False


@dataclass(frozen=True, kw_only=True)
class Group(Generic[PartT]):
    """Recordings that are asked together: a run's, or a side's of a comparison."""

    name: str
    parts: Sequence[PartT]
    """What each recording has to say that could be asked."""
    traces: Sequence[str] = ()
    """Their ids."""
    waiting_count: int = 0
    """Recordings that are still to be read; with them, the answer may come out otherwise."""
    problems: Sequence[Problem] = ()
    """Of those that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class GroupsEndpoint(Generic[PartT, QueryT]):
    """Asked of what several recordings say together.

    `part` is what one of them says: small, and kept when its events are let go. It is worked out
    once a recording for all endpoints that share the function. `entries` chooses them by name.
    """

    path: str
    meaning: str
    response: ResponseType
    part: Callable[[Trace], PartT]
    entries: Callable[[Catalog, QueryT], Mapping[str, tuple[Entry, ...]]]
    handler: Callable[[Mapping[str, Group[PartT]], QueryT], msgspec.Struct | Binary]
    query: type[QueryT] = Query  # type: ignore[assignment]
    needs_all: bool = True
    """False where it can be answered as soon as one group has something to say."""


@dataclass(frozen=True, kw_only=True)
class CatalogEndpoint(Generic[QueryT]):
    """Asked of the catalog: what was found, and in which state it is."""

    path: str
    meaning: str
    response: ResponseType
    handler: Callable[[Catalog, QueryT], msgspec.Struct | Binary]
    query: type[QueryT] = Query  # type: ignore[assignment]


Endpoint = TraceEndpoint[Any] | GroupsEndpoint[Any, Any] | CatalogEndpoint[Any]


def address(endpoint: Endpoint) -> str:
    """Return an endpoint's path below `api/`, with the names of its parameters in brackets.

    `<path:name>` takes one that may hold slashes.
    """
    return (
        f"traces/<trace>/{endpoint.path}" if isinstance(endpoint, TraceEndpoint) else endpoint.path
    )


class RunQuery(Query, frozen=True, kw_only=True):
    """The parameter of what is asked of a whole run."""

    run: str
    """The run's id."""


def run_entries(catalog: Catalog, query: Any) -> Mapping[str, tuple[Entry, ...]]:  # noqa: ANN401
    """Return the recordings of the run that an `OfRun` names, under the run's id."""
    return {query.run: catalog.run(query.run)}


@cache
def all_endpoints() -> tuple[Endpoint, ...]:
    """Return every endpoint in `endpoints/`, in the order of their files."""
    package = f"{__package__}.endpoints"
    folder = import_module(package).__path__
    names = sorted(module.name for module in iter_modules(folder) if module.name[0] != "_")
    modules = [import_module(f"{package}.{name}") for name in names]
    return tuple(endpoint for module in modules for endpoint in module.ENDPOINTS)
