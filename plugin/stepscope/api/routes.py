"""The API's routes: look up, call, encode."""

from collections.abc import Callable

import flask
import msgspec

from stepscope._version import __version__
from stepscope.advice import RecordingAdvice, merged
from stepscope.api import encoding, listing, messages, refusals
from stepscope.api.answers import Answers
from stepscope.catalog import Catalog
from stepscope.entries import Cancelled, Entry, Ready, Unreadable
from stepscope.report import SCHEMA_VERSION, Problem, RunReport, json_schema
from stepscope.trace import Trace

DEFAULT_GROUP = "name"
OWN_HEADER = "X-Stepscope"


def register(app: flask.Flask, catalog: Catalog, answers: Answers) -> None:
    """Add the routes that `messages` lists."""
    api = flask.Blueprint("api", __name__, url_prefix="/api")

    @api.get("/runs")
    def runs() -> flask.Response:
        catalog.start_reading()
        catalog.look_again()
        answer = encoding.encoded(listing.runs(catalog))
        entity_tag = encoding.tag(answer.get_data(as_text=True))
        if encoding.is_known(entity_tag):
            answer = encoding.not_modified()
        return encoding.revalidated(answer, entity_tag)

    @api.get("/runs/<run>/advice")
    def advice(run: str) -> flask.Response:
        entries = catalog.run(run)
        known = _known_of(entries)
        name = entries[0].file.run
        return _kept(entries, lambda: _merged(catalog, name, [_advice(e, answers) for e in known]))

    @api.get("/traces/<trace>/overview")
    def overview(trace: str) -> flask.Response:
        entry = catalog.recording(trace)
        recording = _ready(entry)
        return _kept((entry,), lambda: answers.overview(recording))

    @api.get("/traces/<trace>/operators")
    def operators(trace: str) -> flask.Response:
        return _table(catalog.recording(trace), answers.operators)

    @api.get("/traces/<trace>/kernels")
    def kernels(trace: str) -> flask.Response:
        return _table(catalog.recording(trace), answers.kernels)

    @api.get("/schema")
    def schema() -> flask.Response:
        return encoding.encoded(json_schema())

    _add_changes(api, catalog)
    app.register_blueprint(api)


def _add_changes(api: flask.Blueprint, catalog: Catalog) -> None:
    """Add the routes that change something: what is read."""

    @api.post("/traces/<trace>/cancel")
    def cancel(trace: str) -> flask.Response:
        _require_own_page()
        catalog.cancel(trace)
        return encoding.encoded(listing.runs(catalog))

    @api.post("/traces/<trace>/read")
    def read(trace: str) -> flask.Response:
        _require_own_page()
        catalog.read_again(trace)
        return encoding.encoded(listing.runs(catalog))

    @api.post("/runs/<run>/cancel")
    def cancel_all(run: str) -> flask.Response:
        _require_own_page()
        for entry in catalog.run(run):
            catalog.cancel(entry.file.id)
        return encoding.encoded(listing.runs(catalog))

    @api.post("/runs/<run>/read")
    def read_all(run: str) -> flask.Response:
        _require_own_page()
        for entry in reversed(catalog.run(run)):  # what is asked for last is read first
            if isinstance(entry.state, Cancelled | Unreadable):
                catalog.read_again(entry.file.id)
        return encoding.encoded(listing.runs(catalog))


def _require_own_page() -> None:
    """Refuse what a page of another origin may have sent: it cannot add a header of its own."""
    if OWN_HEADER not in flask.request.headers:
        raise refusals.foreign(OWN_HEADER)


def _table(entry: Entry, build: Callable[[Trace, str], messages.Table]) -> flask.Response:
    group = flask.request.args.get("group", DEFAULT_GROUP)
    trace = _ready(entry)
    return _kept((entry,), lambda: build(trace, group))


def _ready(entry: Entry) -> Trace:
    match entry.state:
        case Ready(trace=trace):
            return trace
        case Unreadable(problem=problem):
            raise _unusable(problem)
        case Cancelled():
            raise refusals.cancelled(entry.file.worker)
    raise refusals.still_loading(entry.file.worker)


def _merged(catalog: Catalog, name: str, recordings: list[RecordingAdvice]) -> RunReport:
    if catalog.advice is None:
        return merged(name, recordings)
    return merged(name, recordings, catalog.advice)


def _advice(entry: Entry, answers: Answers) -> RecordingAdvice:
    """Return what was said when the file was read, whether its trace is kept or not."""
    if entry.facts is not None and entry.facts.advice is not None:
        return entry.facts.advice
    return answers.advice(_ready(entry))


def _known_of(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return what of a run can be answered for now: files still being read come in later."""
    known = tuple(
        entry
        for entry in entries
        if isinstance(entry.state, Ready)
        or (entry.facts and entry.facts.advice and not isinstance(entry.state, Unreadable))
    )
    if known:
        return known
    problems = [entry.state.problem for entry in entries if isinstance(entry.state, Unreadable)]
    cancelled_count = sum(isinstance(entry.state, Cancelled) for entry in entries)
    if len(problems) == len(entries):
        raise _unusable(problems[0])
    if len(problems) + cancelled_count == len(entries):
        raise refusals.cancelled(entries[0].file.run)
    raise refusals.still_loading(entries[0].file.run)


def _unusable(problem: Problem) -> refusals.RefusalError:
    return refusals.unreadable(f"{problem.path}: {problem.message}", problem.remedy)


def _kept(entries: tuple[Entry, ...], answer: Callable[[], msgspec.Struct]) -> flask.Response:
    """Answer anew only where the client does not hold what these files say already."""
    files = [
        (entry.file.id, entry.file.run, entry.file.span, entry.stamp, type(entry.state).__name__)
        for entry in entries
    ]
    question = (flask.request.path, flask.request.query_string)
    entity_tag = encoding.tag(__version__, SCHEMA_VERSION, question, files)
    if encoding.is_known(entity_tag):
        return encoding.revalidated(encoding.not_modified(), entity_tag)
    return encoding.revalidated(encoding.encoded(answer()), entity_tag)
