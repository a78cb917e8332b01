"""The Flask app: the API and the page, for TensorBoard and for `stepscope serve`."""

from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

import flask

from stepscope.api import allowed_hosts, encoding, http_errors, page, perfetto, routes
from stepscope.api.computations import Computations
from stepscope.api.endpoint import Endpoint, all_endpoints
from stepscope.catalog.catalog import Catalog

MOST_BODY_BYTES = 64 * 1024
"""Largest body of a request; none needs one."""


def create_app(
    catalog: Catalog,
    *,
    endpoints: Iterable[Endpoint] | None = None,
    host_names: Iterable[str] | None = None,
    static: Path = page.STATIC,
    response_seconds: float | None = None,
) -> flask.Flask:
    """Return the app over a catalog.

    `response_seconds` is the time limit of an answer that is computed from traces, outside of the
    caller's thread; None where a single client waits for all of them.
    `endpoints` defaults to all of `endpoints/`. `host_names` are the accepted names in `Host`;
    None where the surrounding server (TensorBoard) checks them.
    """
    app = flask.Flask("stepscope", static_folder=None)
    app.config[encoding.SERVER] = token_hex(8)
    app.config[page.FOLDER] = static
    http_errors.register(app)
    app.before_request(_refuse_large_body)
    if host_names is not None:
        allowed_hosts.register(app, frozenset(host_names))
    endpoints = all_endpoints() if endpoints is None else endpoints
    routes.register(app, catalog, endpoints, Computations(response_seconds))
    perfetto.register(app)
    page.register(app, static)
    app.after_request(encoding.finished)
    # Flask documents this assignment for middleware
    app.wsgi_app = encoding.typed_when_unmodified(app.wsgi_app)  # type: ignore[assignment, method-assign]
    return app


def _refuse_large_body() -> None:
    """Refuse a body that is too large by its length, or that has none: it is not read."""
    request = flask.request
    is_chunked = request.headers.get("Transfer-Encoding", "identity").lower() != "identity"
    if is_chunked or (request.content_length or 0) > MOST_BODY_BYTES:
        raise http_errors.too_large(MOST_BODY_BYTES)
