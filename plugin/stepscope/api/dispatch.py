"""From a request to an endpoint's answer: parameters, the recordings, and what is kept of them."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, NamedTuple, assert_never

import flask
import msgspec

from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.api import encoding, http_errors
from stepscope.api.endpoint import (
    Binary,
    Bytes,
    CatalogEndpoint,
    Endpoint,
    Group,
    GroupsEndpoint,
    Query,
    TimeRangeQuery,
    TraceEndpoint,
)
from stepscope.base.errors import UsageError
from stepscope.base.report import Problem
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Cancelled, Entry, Ready, Summarised, Unreadable
from stepscope.comparison.samples import sample
from stepscope.model.trace import Trace
from stepscope.readers import memory_size
from stepscope.storage import FileStamp
from stepscope.summaries.summary import PARTS

Answer = msgspec.Struct | Binary
Part = Callable[[Trace], Any]
Key = tuple[str, Part]
"""A file's id, and what is asked of its recording."""
PARTS_SHARE = 0.1
"""Of the memory that may be used, what recordings have said for their runs beside summaries."""


class _Said(NamedTuple):
    stamp: FileStamp
    said: Any
    size_bytes: int


class PartCache:
    """What recordings say for their runs: each worked out once, and kept when events are let go.

    What a file's summary holds is taken from there. Of the rest, what was asked for least lately
    goes where it takes too much memory.
    """

    def __init__(self, bound_bytes: int) -> None:
        self._bound_bytes = bound_bytes
        self._parts: OrderedDict[Key, _Said] = OrderedDict()
        self._lock = Lock()
        self._work = Lock()
        self.bytes = 0
        """What is kept takes so much memory."""

    def of(self, entry: Entry, part: Part) -> tuple[Any] | None:
        """Return what a file's recording says, in a tuple; None where it is not known yet."""
        known = self._known(entry, part)
        if known is not None:
            return known
        with self._work:  # one at a time: two requests for the same would do the work twice
            known = self._known(entry, part)
            if known is not None:
                return known
            if not isinstance(entry.state, Ready):
                return None
            said = part(entry.state.trace)
            self.keep(entry, part, said)
            return (said,)

    def keep(self, entry: Entry, part: Part, said: object) -> None:
        """Keep what a recording says."""
        size_bytes = memory_size.size_bytes(said)
        with self._lock:
            self._forget((entry.file.id, part))
            self._parts[entry.file.id, part] = _Said(entry.stamp, said, size_bytes)
            self.bytes += size_bytes
            while self.bytes > self._bound_bytes:
                self._forget(next(iter(self._parts)))

    def _forget(self, key: Key) -> None:
        gone = self._parts.pop(key, None)
        self.bytes -= gone.size_bytes if gone is not None else 0

    def _known(self, entry: Entry, part: Part) -> tuple[Any] | None:
        summary = entry.facts.summary if entry.facts is not None else None
        if summary is not None and (said := summary.part(part)) is not None:
            return said
        with self._lock:
            kept = self._parts.get((entry.file.id, part))
            if kept is None or kept.stamp != entry.stamp:
                return None
            self._parts.move_to_end((entry.file.id, part))
            return (kept.said,)


class Dispatcher:
    """Answers endpoints from a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._parts = PartCache(int(catalog.settings.memory_bytes * PARTS_SHARE))

    def answer(self, endpoint: Endpoint, given: dict[str, str]) -> flask.Response:
        """Answer a request with these parameters, those of the path included."""
        match endpoint:
            case TraceEndpoint():
                return self._of_trace(endpoint, given)
            case GroupsEndpoint():
                return self._of_groups(endpoint, given)
            case CatalogEndpoint():
                query = parsed(endpoint.query, given)
                return sent(endpoint, endpoint.handler(self._catalog, query))
        assert_never(endpoint)

    def _of_trace(self, endpoint: TraceEndpoint[Any], given: dict[str, str]) -> flask.Response:
        entry = self._catalog.file(given.pop("trace"))
        query = parsed(endpoint.query, given)
        trace = ready(entry)

        def ask() -> Answer:
            asked = trace
            if isinstance(query, TimeRangeQuery) and not endpoint.is_whole:
                asked = slice_trace(trace, query.start_ns, query.end_ns)
            return endpoint.handler(asked, query)

        return kept((entry,), lambda: sent(endpoint, ask()))

    def _of_groups(
        self, endpoint: GroupsEndpoint[Any, Any], given: dict[str, str]
    ) -> flask.Response:
        query = parsed(endpoint.query, given)
        chosen = endpoint.entries(self._catalog, query)
        entries = [entry for own in chosen.values() for entry in own]

        def ask() -> flask.Response:
            groups = {key: self._group(own, endpoint.part) for key, own in chosen.items()}
            silent = [key for key, group in groups.items() if not group.parts]
            if silent and (endpoint.needs_all or len(silent) == len(groups)):
                key = max(silent, key=lambda each: groups[each].waiting_count)
                raise _why_none(chosen[key], groups[key])
            answer = sent(endpoint, endpoint.handler(groups, query))
            if any(group.waiting_count for group in groups.values()):
                encoding.forbid_storing(answer)
            return answer

        return kept(entries, ask)

    def _group(self, entries: Sequence[Entry], part: Part) -> Group[Any]:
        found = {entry.file.id: self._parts.of(entry, part) for entry in entries}
        lacking = [entry for entry in entries if found[entry.file.id] is None]
        found |= self._fetched(lacking, part)
        lacking = [entry for entry in lacking if found[entry.file.id] is None]
        problems = [each.state.problem for each in lacking if isinstance(each.state, Unreadable)]
        waiting = [each for each in lacking if not isinstance(each.state, Unreadable | Cancelled)]
        self._ask_for(waiting, part)
        self._catalog.reserve_memory(self._parts.bytes)
        said = {identity: each[0] for identity, each in found.items() if each is not None}
        return Group(
            name=entries[0].file.run if entries else "",
            parts=list(said.values()),
            traces=list(said),
            waiting_count=len(waiting),
            problems=problems,
        )

    def _fetched(self, entries: Sequence[Entry], part: Part) -> dict[str, tuple[Any]]:
        """Return what is kept on disk of what files say, beside what their summaries hold here."""
        summarised = [entry for entry in entries if entry.facts and entry.facts.summary]
        if part is not sample or not summarised:
            return {}
        kept = self._catalog.with_samples(summarised)
        found = {}
        for entry in summarised:
            summary = kept.get(entry.file.id)
            if summary is not None and (said := summary.part(part)) is not None:
                self._parts.keep(entry, part, said[0])
                found[entry.file.id] = said
        return found

    def _ask_for(self, entries: Iterable[Entry], part: Part) -> None:
        """Have read what is missing: events only where summaries do not hold what they say."""
        runs = set()
        for entry in entries:
            if part in PARTS and not isinstance(entry.state, Summarised):
                runs.add(entry.file.run_id)
            else:
                self._catalog.file(entry.file.id)
        for run in runs:
            self._catalog.run(run)


def parsed(query: type[Query], given: dict[str, str]) -> Any:  # noqa: ANN401 (the endpoint's own)
    """Return a request's parameters as an endpoint's type.

    Raises:
        UsageError: one is missing, unknown, or not what it should be.
    """
    try:
        return msgspec.convert(given, query, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(str(error).replace("Object", "The request")) from error


def sent(endpoint: Endpoint, answer: Answer) -> flask.Response:
    """Return an answer as a response."""
    if not isinstance(answer, Binary):
        return encoding.encoded(answer)
    kind = endpoint.response
    media_type = kind.media_type if isinstance(kind, Bytes) else "application/octet-stream"
    response = flask.Response(answer.body, mimetype=media_type)
    if answer.file_name:
        response.headers.set("Content-Disposition", "attachment", filename=answer.file_name)
    return response


def ready(entry: Entry) -> Trace:
    """Return a file's recording.

    Raises:
        RefusalError: it was not read, or cannot be.
    """
    match entry.state:
        case Ready(trace=trace):
            return trace
        case Unreadable(problem=problem):
            raise unusable(problem)
        case Cancelled():
            raise http_errors.cancelled(entry.file.worker)
    raise http_errors.still_loading(entry.file.worker)


def unusable(problem: Problem) -> http_errors.RefusalError:
    """Return the refusal for a file that cannot be read."""
    return http_errors.unreadable(f"{problem.path}: {problem.message}", problem.remedy)


def _why_none(entries: Sequence[Entry], group: Group[Any]) -> http_errors.RefusalError:
    if group.waiting_count or not entries:
        return http_errors.still_loading(group.name)
    if len(group.problems) == len(entries):
        return unusable(group.problems[0])
    return http_errors.cancelled(group.name)


def kept(entries: Iterable[Entry], answer: Callable[[], flask.Response]) -> flask.Response:
    """Answer anew only where the client does not hold what these files say already.

    What another server said is never taken for this one's: settings of advice, rules of other
    packages and stepscope itself may have been others there.
    """
    question = (flask.request.path, flask.request.query_string)
    server = flask.current_app.config[encoding.SERVER]
    entity_tag = encoding.tag(server, question, [_standing(entry) for entry in entries])
    if encoding.client_has(entity_tag):
        return encoding.revalidated(encoding.not_modified(), entity_tag)
    said = answer()
    return said if encoding.is_storing_forbidden(said) else encoding.revalidated(said, entity_tag)


def _standing(entry: Entry) -> tuple[object, ...]:
    """Return what an answer can depend on of what is known of a file.

    Whether its events are there is no part of it: nothing is said of them while they are not.
    """
    file, state = entry.file, entry.state
    known = "known" if isinstance(state, Ready | Summarised) else type(state).__name__
    return file.id, file.run, file.span, entry.stamp, known, entry.facts is None
