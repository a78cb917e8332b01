"""The Flask app: the API and the page, for TensorBoard and for `stepscope serve`."""

from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

import flask

from stepscope.api import allowed_hosts, encoding, http_errors, page, perfetto, routes
from stepscope.api.endpoint import Endpoint, all_endpoints
from stepscope.catalog.catalog import Catalog


def create_app(
    catalog: Catalog,
    *,
    endpoints: Iterable[Endpoint] | None = None,
    host_names: Iterable[str] | None = None,
    static: Path = page.STATIC,
) -> flask.Flask:
    """Return the app over a catalog.

    `endpoints` defaults to all of `endpoints/`. `host_names` are the accepted names in `Host`;
    None where the surrounding server (TensorBoard) checks them.
    """
    app = flask.Flask("stepscope", static_folder=None)
    app.config[encoding.SERVER] = token_hex(8)
    app.config[page.FOLDER] = static
    http_errors.register(app)
    if host_names is not None:
        allowed_hosts.register(app, frozenset(host_names))
    routes.register(app, catalog, all_endpoints() if endpoints is None else endpoints)
    perfetto.register(app)
    page.register(app, static)
    app.after_request(encoding.finished)
    # Flask documents this assignment for middleware
    app.wsgi_app = encoding.typed_when_unmodified(app.wsgi_app)  # type: ignore[assignment, method-assign]
    return app
