"""The API's routes: those of the endpoints, the list of runs, advice, and what changes the list."""

from collections.abc import Callable, Iterable

import flask

from stepscope.api import encoding, http_errors, run_listing
from stepscope.api.dispatch import Dispatcher, parsed
from stepscope.api.endpoint import Endpoint, address
from stepscope.api.openapi import document
from stepscope.api.post_actions import CHANGES, Change
from stepscope.api.run_advice import AdviceQuery, RunAdvice
from stepscope.base.report import json_schema
from stepscope.catalog.catalog import Catalog


def register(app: flask.Flask, catalog: Catalog, endpoints: Iterable[Endpoint]) -> None:
    """Add the routes that `messages` and the endpoints list."""
    api = flask.Blueprint("api", __name__, url_prefix="/api")
    endpoints = tuple(endpoints)

    run_advice = RunAdvice(catalog)

    @api.get("/runs")
    def runs() -> flask.Response:
        catalog.start_reading()
        catalog.rescan_soon()
        return _listed(catalog)

    @api.get("/runs/<run>/advice")
    def advice(run: str) -> flask.Response:
        query = parsed(AdviceQuery, flask.request.args.to_dict() | {"run": run})
        return run_advice.answer(query.run, query.trace)

    @api.get("/schema")
    def schema() -> flask.Response:
        return encoding.encoded(json_schema())

    @api.get("/openapi.json")
    def openapi() -> flask.Response:
        return encoding.encoded(document(endpoints))

    _add_endpoints(api, Dispatcher(catalog), endpoints)
    _add_changes(api, catalog)
    app.register_blueprint(api)


def _add_endpoints(api: flask.Blueprint, asking: Dispatcher, endpoints: Iterable[Endpoint]) -> None:
    for endpoint in endpoints:
        rule = f"/{address(endpoint)}"
        api.add_url_rule(rule, rule.replace(".", "_"), _answering(asking, endpoint))


def _answering(asking: Dispatcher, endpoint: Endpoint) -> Callable[..., flask.Response]:
    def answer(**path: str) -> flask.Response:
        return asking.answer(endpoint, flask.request.args.to_dict() | path)

    return answer


def _add_changes(api: flask.Blueprint, catalog: Catalog) -> None:
    for change in CHANGES:
        name = change.path.replace("/", "_")
        api.add_url_rule(f"/{change.path}", name, _changing(catalog, change), methods=["POST"])


def _changing(catalog: Catalog, change: Change) -> Callable[..., flask.Response]:
    def answer(**path: str) -> flask.Response:
        _require_own_page()
        change.make(catalog, "".join(path.values()))
        return encoding.encoded(run_listing.runs(catalog))

    return answer


def _require_own_page() -> None:
    """Refuse what a page of another origin may have sent: it cannot add a header of its own."""
    if http_errors.OWN_HEADER not in flask.request.headers:
        raise http_errors.foreign(http_errors.OWN_HEADER)


def _listed(catalog: Catalog) -> flask.Response:
    """Answer with what was found, unless the client holds just that."""
    server, standing = flask.current_app.config[encoding.SERVER], catalog.state_key()
    if standing is not None and encoding.client_has(entity_tag := encoding.tag(server, standing)):
        return encoding.revalidated(encoding.not_modified(), entity_tag)
    answer = encoding.encoded(run_listing.runs(catalog))
    if standing is None:  # by the next time, a file that is read now will be further on
        return encoding.revalidated(answer, encoding.tag(answer.get_data(as_text=True)))
    return encoding.revalidated(answer, encoding.tag(server, standing))
