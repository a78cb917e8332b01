"""Routes of the API: endpoints, the list of runs, a run's advice, and requests that change runs."""

from collections.abc import Callable, Iterable
from threading import Lock
from time import monotonic

import flask
import msgspec

from stepscope.api import encoding, http_errors, run_listing
from stepscope.api.computations import Computations
from stepscope.api.dispatch import Dispatcher, arguments, parsed
from stepscope.api.endpoint import Endpoint, address
from stepscope.api.openapi import document
from stepscope.api.post_actions import CHANGES, Change
from stepscope.api.run_advice import AdviceQuery, RunAdvice
from stepscope.api.run_results import RunResults
from stepscope.base.report import json_schema
from stepscope.catalog.catalog import Catalog

RECENT_SECONDS = 0.5
"""Time for which a list of runs is sent again while files are read."""


class RunListing:
    """The list of runs in JSON; while files are read, it is made a few times a second at most."""

    def __init__(self, catalog: Catalog, run_results: RunResults) -> None:
        self._catalog = catalog
        self._run_results = run_results
        self._lock = Lock()
        self._recent = (b"", "")
        """The last list, and its entity tag."""
        self._until = 0.0

    def changed(self) -> flask.Response:
        """Return the list of runs after a change."""
        with self._lock:
            self._until = 0.0
        return encoding.encoded(run_listing.runs(self._catalog, self._run_results.current()))

    def respond(self) -> flask.Response:
        """Return the list of runs, unless the client has the current one."""
        server, state = flask.current_app.config[encoding.SERVER], self._catalog.state_key()
        if state is None:  # files are being read: their progress changes until the next request
            body, entity_tag = self._while_reading()
            if encoding.client_has(entity_tag):
                return encoding.revalidated(encoding.not_modified(), entity_tag)
            return encoding.revalidated(flask.Response(body, mimetype=encoding.JSON), entity_tag)
        results = self._run_results.current()
        entity_tag = encoding.tag(server, state, results.version, results.is_pending)
        if encoding.client_has(entity_tag):
            return encoding.revalidated(encoding.not_modified(), entity_tag)
        response = encoding.encoded(run_listing.runs(self._catalog, results))
        return encoding.revalidated(response, entity_tag)

    def _while_reading(self) -> tuple[bytes, str]:
        with self._lock:
            if monotonic() >= self._until:
                results = self._run_results.current()
                body = msgspec.json.encode(run_listing.runs(self._catalog, results))
                self._recent = (body, encoding.tag(body.decode()))
                self._until = monotonic() + RECENT_SECONDS
            return self._recent


def register(
    app: flask.Flask,
    catalog: Catalog,
    endpoints: Iterable[Endpoint],
    computations: Computations,
) -> None:
    """Add the routes of the API to an app."""
    api = flask.Blueprint("api", __name__, url_prefix="/api")
    api.before_request(_require_same_origin)
    endpoints = tuple(endpoints)
    run_advice, listing = RunAdvice(catalog, computations), RunListing(catalog, RunResults(catalog))

    @api.get("/runs")
    def runs() -> flask.Response:
        catalog.start_reading()
        catalog.rescan_soon()
        return listing.respond()

    @api.get("/runs/<run>/advice")
    def advice(run: str) -> flask.Response:
        query = parsed(AdviceQuery, flask.request.args.to_dict() | {"run": run})
        return run_advice.respond(query.run, query.trace)

    @api.get("/schema")
    def schema() -> flask.Response:
        return encoding.encoded(json_schema())

    @api.get("/openapi.json")
    def openapi() -> flask.Response:
        return encoding.encoded(document(endpoints))

    dispatcher = Dispatcher(catalog, computations)
    for endpoint in endpoints:
        rule = f"/{address(endpoint)}"
        api.add_url_rule(rule, rule.replace(".", "_"), _get(dispatcher, endpoint))
    for change in CHANGES:
        name = change.path.replace("/", "_")
        api.add_url_rule(f"/{change.path}", name, _post(catalog, listing, change), methods=["POST"])
    app.register_blueprint(api)


def _require_same_origin() -> None:
    """Refuse requests of pages of other origins, which browsers mark.

    It could not read the response, but start a reading or an expensive query, also with an image
    or a frame. Following a link is allowed.
    """
    headers = flask.request.headers
    is_foreign = headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}
    if is_foreign and headers.get("Sec-Fetch-Dest") != "document":
        raise http_errors.other_origin()


def _get(dispatcher: Dispatcher, endpoint: Endpoint) -> Callable[..., flask.Response]:
    def respond(**path: str) -> flask.Response:
        sent = arguments(endpoint.query, dict(flask.request.args.lists()))
        return dispatcher.respond(endpoint, sent | path)

    return respond


def _post(catalog: Catalog, listing: RunListing, change: Change) -> Callable[..., flask.Response]:
    def respond(**path: str) -> flask.Response:
        # A page of another origin cannot add a header.
        if http_errors.OWN_HEADER not in flask.request.headers:
            raise http_errors.foreign(http_errors.OWN_HEADER)
        change.make(catalog, "".join(path.values()))
        return listing.changed()

    return respond
