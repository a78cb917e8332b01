"""Requests to responses: parameters, traces, cached parts of traces, and entity tags."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, assert_never

import flask
import msgspec

from stepscope.advice import TraceAdvice, advise_trace
from stepscope.advice.settings import DEFAULT, AdviceSettings
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.api import encoding, http_errors
from stepscope.api.computations import Computations
from stepscope.api.endpoint import (
    Binary,
    Bytes,
    CatalogEndpoint,
    Endpoint,
    Group,
    GroupsEndpoint,
    Message,
    Query,
    TimeRangeQuery,
    TraceEndpoint,
)
from stepscope.base import urls
from stepscope.base.errors import UsageError
from stepscope.base.plain_text import plain
from stepscope.base.report import Problem
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Cancelled, Entry, Ready, Summarised, Unreadable
from stepscope.comparison.samples import sample
from stepscope.model.trace import Trace
from stepscope.readers import memory_size
from stepscope.storage import FileStamp
from stepscope.summaries.summary import PARTS

Part = Callable[[Trace], Any]
Key = tuple[str, Part]
"""A file's id and the function that extracts the part."""
PARTS_SHARE = 0.1
"""Fraction of the memory limit for parts of traces that are not in their summaries."""


class _CachedPart(NamedTuple):
    stamp: FileStamp
    value: Any
    size_bytes: int


class PartCache:
    """Parts of traces, computed once and cached after the traces' events are released.

    Parts in a file's summary are taken from there. The least recently used others are evicted
    beyond the memory limit.
    """

    def __init__(self, bound_bytes: int) -> None:
        self._bound_bytes = bound_bytes
        self._parts: OrderedDict[Key, _CachedPart] = OrderedDict()
        self._lock = Lock()
        self._work = Lock()
        self.bytes = 0
        """Memory of the cached parts."""

    def of(self, entry: Entry, part: Part) -> tuple[Any] | None:
        """Return a part of a file's trace in a tuple; None where the trace is not read yet."""
        cached = self._cached(entry, part)
        if cached is not None:
            return cached
        with self._work:  # two requests for the same part would compute it twice
            cached = self._cached(entry, part)
            if cached is not None:
                return cached
            if not isinstance(entry.state, Ready):
                return None
            value = part(entry.state.trace)
            self.keep(entry, part, value)
            return (value,)

    def keep(self, entry: Entry, part: Part, value: object) -> None:
        """Cache a part of a trace."""
        size_bytes = memory_size.size_bytes(value)
        with self._lock:
            self._evict((entry.file.id, part))
            self._parts[entry.file.id, part] = _CachedPart(entry.stamp, value, size_bytes)
            self.bytes += size_bytes
            while self.bytes > self._bound_bytes:
                self._evict(next(iter(self._parts)))

    def _evict(self, key: Key) -> None:
        evicted = self._parts.pop(key, None)
        self.bytes -= evicted.size_bytes if evicted is not None else 0

    def _cached(self, entry: Entry, part: Part) -> tuple[Any] | None:
        summary = entry.facts.summary if entry.facts is not None else None
        if summary is not None and (value := summary.part(part)) is not None:
            return value
        with self._lock:
            cached = self._parts.get((entry.file.id, part))
            if cached is None or cached.stamp != entry.stamp:
                return None
            self._parts.move_to_end((entry.file.id, part))
            return (cached.value,)


class Payload(NamedTuple):
    """A handler's result in bytes, from which every request that shares it makes a response."""

    body: bytes | Iterable[bytes]
    media_type: str
    file_name: str = ""
    is_partial: bool = False
    """Whether it changes when more files are read."""


class Dispatcher:
    """Calls the handlers of endpoints with the traces of a catalog."""

    def __init__(self, catalog: Catalog, computations: Computations) -> None:
        self._catalog = catalog
        self._computations = computations
        self._parts = PartCache(int(catalog.settings.memory_bytes * PARTS_SHARE))

    def respond(self, endpoint: Endpoint, parameters: dict[str, Any]) -> flask.Response:
        """Return the response to a request with these parameters, those of the path included."""
        match endpoint:
            case TraceEndpoint():
                return self._of_trace(endpoint, parameters)
            case GroupsEndpoint():
                return self._of_groups(endpoint, parameters)
            case CatalogEndpoint():
                query = parsed(endpoint.query, parameters)
                return self._computed(
                    endpoint,
                    encoding.tag(endpoint.path, query),
                    lambda: payload(endpoint, endpoint.handler(self._catalog, query)),
                )
        assert_never(endpoint)

    def _of_trace(self, endpoint: TraceEndpoint[Any], parameters: dict[str, Any]) -> flask.Response:
        entry = self._catalog.file(parameters.pop("trace"))
        query = parsed(endpoint.query, parameters)
        trace = ready(entry)

        def compute() -> Payload:
            part = trace
            if isinstance(query, TimeRangeQuery) and not endpoint.is_whole:
                part = slice_trace(trace, query.start_ns, query.end_ns)
            settings = (advice_settings(self._catalog, entry),) if endpoint.has_settings else ()
            advice = (trace_advice(self._catalog, entry),) if endpoint.has_advice else ()
            return payload(endpoint, endpoint.handler(part, *settings, *advice, query))

        return unless_cached((entry,), lambda tag: self._computed(endpoint, tag, compute))

    def _computed(
        self, endpoint: Endpoint, key: str, compute: Callable[[], Payload]
    ) -> flask.Response:
        """Return the response with a payload, computed in the lane of the endpoint."""
        is_shared = not isinstance(endpoint.response, Bytes)  # it may be read once only
        result = self._computations.result(endpoint.lane, key if is_shared else object(), compute)
        response = flask.Response(mimetype=result.media_type)
        if result.file_name:
            name = plain(result.file_name)
            response.headers.set("Content-Disposition", "attachment", filename=name)
        if result.is_partial:
            encoding.forbid_storing(response)
        body = result.body  # last: nothing that fails may hold the place of a download
        if isinstance(body, bytes):
            response.set_data(body)
        else:
            response.response = self._computations.sent(body)
        return response

    def _of_groups(
        self, endpoint: GroupsEndpoint[Any, Any], parameters: dict[str, Any]
    ) -> flask.Response:
        query = parsed(endpoint.query, parameters)
        entries = endpoint.entries(self._catalog, query)

        def compute() -> Payload:
            groups = {key: self._group(of_key, endpoint.part) for key, of_key in entries.items()}
            empty = [key for key, group in groups.items() if not group.parts]
            if empty and (endpoint.needs_all or len(empty) == len(groups)):
                key = max(empty, key=lambda name: groups[name].waiting_count)
                raise _empty_group(entries[key], groups[key])
            is_partial = any(group.waiting_count for group in groups.values())
            return payload(endpoint, endpoint.handler(groups, query))._replace(
                is_partial=is_partial
            )

        all_entries = [entry for of_key in entries.values() for entry in of_key]
        return unless_cached(all_entries, lambda tag: self._computed(endpoint, tag, compute))

    def _group(self, entries: Sequence[Entry], part: Part) -> Group[Any]:
        parts = {entry.file.id: self._parts.of(entry, part) for entry in entries}
        missing = [entry for entry in entries if parts[entry.file.id] is None]
        parts |= self._stored(missing, part)
        missing = [entry for entry in missing if parts[entry.file.id] is None]
        states = [entry.state for entry in missing]
        waiting = [
            entry for entry in missing if not isinstance(entry.state, Unreadable | Cancelled)
        ]
        self._request(waiting, part)
        self._catalog.reserve_memory(self._parts.bytes)
        values = {
            identity: of_file[0] for identity, of_file in parts.items() if of_file is not None
        }
        return Group(
            name=entries[0].file.run if entries else "",
            parts=list(values.values()),
            traces=list(values),
            waiting_count=len(waiting),
            problems=[state.problem for state in states if isinstance(state, Unreadable)],
        )

    def _stored(self, entries: Sequence[Entry], part: Part) -> dict[str, tuple[Any]]:
        """Return the samples of files that are stored on disk and not in their summaries here."""
        summarised = [entry for entry in entries if entry.facts and entry.facts.summary]
        if part is not sample or not summarised:
            return {}
        summaries = self._catalog.with_samples(summarised)
        stored = {}
        for entry in summarised:
            summary = summaries.get(entry.file.id)
            if summary is not None and (value := summary.part(part)) is not None:
                self._parts.keep(entry, part, value[0])
                stored[entry.file.id] = value
        return stored

    def _request(self, entries: Iterable[Entry], part: Part) -> None:
        """Request the reading of files: of their events only where summaries lack the part."""
        runs = set()
        for entry in entries:
            if part in PARTS and not isinstance(entry.state, Summarised):
                runs.add(entry.file.run_id)
            else:
                self._catalog.file(entry.file.id)
        for run in runs:
            self._catalog.run(run)


def arguments(query: type[Query], sent: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return a request's parameters by name: lists of those that it may repeat."""
    repeatable = _repeatable(query)
    return {
        name: values if name in repeatable else values[0] for name, values in sent.items() if values
    }


@cache
def _repeatable(query: type[Query]) -> frozenset[str]:
    """Return the names of the fields that are tuples."""
    info = msgspec.inspect.type_info(query)
    fields = info.fields if isinstance(info, msgspec.inspect.StructType) else ()
    return frozenset(
        field.name for field in fields if isinstance(field.type, msgspec.inspect.VarTupleType)
    )


def parsed(query: type[Query], parameters: dict[str, Any]) -> Any:  # noqa: ANN401 (the endpoint's)
    """Return a request's parameters as an endpoint's type.

    Raises:
        UsageError: a parameter is missing, unknown or invalid.
    """
    try:
        return msgspec.convert(parameters, query, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(str(error).replace("Object", "The request")) from error


def payload(endpoint: Endpoint, message: Message) -> Payload:
    """Return a handler's result in bytes."""
    if not isinstance(message, Binary):
        return Payload(msgspec.json.encode(message), encoding.JSON)
    kind = endpoint.response
    media_type = kind.media_type if isinstance(kind, Bytes) else "application/octet-stream"
    return Payload(message.body, media_type, message.file_name)


def ready(entry: Entry) -> Trace:
    """Return a file's trace.

    Raises:
        RefusalError: it is not read, or cannot be read.
    """
    match entry.state:
        case Ready(trace=trace):
            return trace
        case Unreadable(problem=problem):
            raise unusable(problem)
        case Cancelled():
            raise http_errors.cancelled(entry.file.worker)
    raise http_errors.still_loading(entry.file.worker)


def advice_settings(catalog: Catalog, entry: Entry) -> AdviceSettings:
    """Return the settings of advice on a file's run."""
    return (catalog.advice or DEFAULT).for_run(entry.file.run)


def trace_advice(catalog: Catalog, entry: Entry) -> TraceAdvice:
    """Return the advice on a file's trace that was computed when the file was read.

    Raises:
        RefusalError: it is not read, or cannot be read.
    """
    if entry.facts is not None and entry.facts.advice is not None:
        return entry.facts.advice
    return advise_trace(ready(entry), advice_settings(catalog, entry))


def unusable(problem: Problem) -> http_errors.RefusalError:
    """Return the refusal for a file that cannot be read, with its name and without its folder."""
    return http_errors.unreadable(f"{urls.name(problem.path)}: {problem.message}", problem.remedy)


def _empty_group(entries: Sequence[Entry], group: Group[Any]) -> http_errors.RefusalError:
    if group.waiting_count or not entries:
        return http_errors.still_loading(group.name)
    if len(group.problems) == len(entries):
        return unusable(group.problems[0])
    return http_errors.cancelled(group.name)


def unless_cached(
    entries: Iterable[Entry], respond: Callable[[str], flask.Response]
) -> flask.Response:
    """Return a response only where the client has no current one for the request and these files.

    `respond` receives the entity tag.

    Responses of other servers are never current: their advice settings, rule packages and version
    may differ.
    """
    request = (flask.request.path, flask.request.query_string)
    server = flask.current_app.config[encoding.SERVER]
    entity_tag = encoding.tag(server, request, [_cache_key(entry) for entry in entries])
    if encoding.client_has(entity_tag):
        return encoding.revalidated(encoding.not_modified(), entity_tag)
    response = respond(entity_tag)
    if encoding.is_storing_forbidden(response):
        return response
    return encoding.revalidated(response, entity_tag)


def _cache_key(entry: Entry) -> tuple[object, ...]:
    """Return the parts of a file's state that can change a response.

    Released events do not: without them there is no response.
    """
    file, state = entry.file, entry.state
    kind = "known" if isinstance(state, Ready | Summarised) else type(state).__name__
    return file.id, file.run, file.span, entry.stamp, kind, entry.facts is None
