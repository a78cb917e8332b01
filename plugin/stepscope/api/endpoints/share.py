"""Endpoint of shared files: a run as one HTML file."""

from typing import Annotated

import flask
import msgspec

from stepscope.api import shared_file
from stepscope.api.endpoint import Binary, Bytes, CatalogEndpoint, RunQuery
from stepscope.catalog.catalog import Catalog

MOST_BYTES = 100_000_000
FileBytes = Annotated[int, msgspec.Meta(ge=shared_file.LEAST_BYTES, le=MOST_BYTES)]


class ShareQuery(RunQuery, frozen=True, kw_only=True):
    """The run, and the largest size of the file."""

    most_bytes: FileBytes = shared_file.DEFAULT_BYTES
    """Largest size of the file."""


def share(catalog: Catalog, query: ShareQuery) -> Binary:
    """Return the page with a run's traces that are read as one HTML file.

    Raises:
        MissingDataError: the page is not built.
        UnknownNameError: the run does not exist.
        UnreadableError: no trace of the run is read.
        UsageError: the size is too small.
    """
    catalog.run(query.run)  # read first from now on
    options = shared_file.Options(most_bytes=query.most_bytes)
    file = shared_file.of_app(flask.current_app, query.run, flask.request.host_url, options)
    return Binary(body=file.html, file_name="stepscope.html")


ENDPOINTS = (
    CatalogEndpoint(
        path="runs/<run>/share",
        meaning="A run as one HTML file with the page, which loads nothing.",
        query=ShareQuery,
        response=Bytes("text/html", "The page with the responses that it shows."),
        handler=share,
        lane="long",
    ),
)
