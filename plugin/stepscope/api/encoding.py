"""JSON, entity tags, compression and common headers of responses."""

import gzip
import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import flask
import msgspec

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'"
)
"""TensorBoard checks it and warns of sources that it does not accept."""
JSON = "application/json"
WORTH_COMPRESSING_BYTES = 1024
COMPRESSION_LEVEL = 5
"""Tables shrink about tenfold; higher levels take longer than a loopback transfer saves."""
CACHED_BYTES = 512 * 1024
"""Largest response whose compressed form is cached: many clients request the same list of runs."""
CACHED_COUNT = 16
NO_STORE = "no-store"
SERVER = "STEPSCOPE_SERVER"
"""Key of the app's configuration for an identifier of this server."""
COMPRESSIBLE = (JSON, "text/", "image/svg+xml")


def typed_when_unmodified(app: "WSGIApplication") -> "WSGIApplication":
    """Add a content type to *not modified* responses: TensorBoard logs a warning without one.

    Flask removes the type from such responses, so it is added around the app.
    """

    def typed(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        def start(
            status: str, headers: list[tuple[str, str]], details: "OptExcInfo | None" = None
        ) -> Callable[[bytes], object]:
            if status.startswith("304"):
                headers = [*headers, ("Content-Type", JSON)]
            return start_response(status, headers, details)

        return app(environ, start)

    return typed


def encoded(message: msgspec.Struct | dict[str, Any]) -> flask.Response:
    """Return a message as JSON."""
    return flask.Response(msgspec.json.encode(message), mimetype=JSON)


def tag(*parts: object) -> str:
    """Return an entity tag that changes when any of the parts does."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:20]


def client_has(entity_tag: str) -> bool:
    """Return whether the client has the response with this tag."""
    return flask.request.if_none_match.contains_weak(entity_tag)


def not_modified() -> flask.Response:
    """Return the response to a client that has the current one."""
    return flask.Response(status=304)


def revalidated(response: flask.Response, entity_tag: str) -> flask.Response:
    """Let the client cache the response and revalidate it on each use."""
    response.headers["Cache-Control"] = "no-cache"
    response.set_etag(entity_tag, weak=True)  # weak: the same for the compressed bytes
    return response


def forbid_storing(response: flask.Response) -> None:
    """Forbid the client to cache a response that changes when more files are read."""
    response.headers["Cache-Control"] = NO_STORE


def is_storing_forbidden(response: flask.Response) -> bool:
    """Return whether the client must not cache a response."""
    return response.headers.get("Cache-Control") == NO_STORE


def finished(response: flask.Response) -> flask.Response:
    """Compress a response where that saves bytes, and add the common headers."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if response.mimetype == "text/html":
        response.headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
    return _compressed(response)


def _compressed(response: flask.Response) -> flask.Response:
    kind = response.mimetype or ""
    if response.status_code == 304 or response.is_streamed or not kind.startswith(COMPRESSIBLE):
        return response
    response.headers["Vary"] = "Accept-Encoding"
    body = response.get_data()
    accepts_gzip = flask.request.accept_encodings["gzip"] > 0
    if accepts_gzip and len(body) >= WORTH_COMPRESSING_BYTES:
        is_small = len(body) <= CACHED_BYTES
        response.set_data(_gzipped_once(body) if is_small else _gzipped(body))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _gzipped(body: bytes) -> bytes:
    return gzip.compress(body, COMPRESSION_LEVEL, mtime=0)


_gzipped_once = lru_cache(maxsize=CACHED_COUNT)(_gzipped)
