"""The Flask app: the API and the page, the same in TensorBoard and stand-alone."""

from collections.abc import Iterable
from pathlib import Path

import flask

from stepscope.api import encoding, hosts, page, refusals, routes
from stepscope.api.answers import Answers
from stepscope.catalog import Catalog


def create_app(
    catalog: Catalog,
    *,
    answers: Answers | None = None,
    hosts_answered: Iterable[str] | None = None,
    static: Path = page.STATIC,
) -> flask.Flask:
    """Return the app over a catalog.

    `hosts_answered` are the names in `Host` that are let in; None where the server around us
    (TensorBoard) decides.
    """
    app = flask.Flask("stepscope", static_folder=None)
    refusals.register(app)
    if hosts_answered is not None:
        hosts.register(app, frozenset(hosts_answered))
    routes.register(app, catalog, answers or Answers())
    page.register(app, static)
    app.after_request(encoding.finished)
    # Flask's own documented place for a middleware
    app.wsgi_app = encoding.typed_when_unmodified(app.wsgi_app)  # type: ignore[assignment, method-assign]
    return app
