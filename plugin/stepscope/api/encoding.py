"""Answers to bytes: JSON, entity tags, compression, and the headers that every answer carries."""

import gzip
import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import flask
import msgspec

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'"
)
"""TensorBoard checks it, and warns of any source that it does not know."""
WORTH_COMPRESSING_BYTES = 1024
COMPRESSION_LEVEL = 5
"""Tables shrink about tenfold; higher levels take longer than a loopback transfer saves."""
UNKEPT = "no-store"
SERVER = "STEPSCOPE_SERVER"
"""Under that, the app's configuration holds what tells this server from every other."""
COMPRESSIBLE = ("application/json", "text/", "image/svg+xml")


def typed_when_unmodified(app: "WSGIApplication") -> "WSGIApplication":
    """Give every *not modified* a content type: TensorBoard logs a warning for one without.

    Flask takes the type off such answers, so it is put back around the app.
    """

    def typed(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        def start(
            status: str, headers: list[tuple[str, str]], details: "OptExcInfo | None" = None
        ) -> Callable[[bytes], object]:
            if status.startswith("304"):
                headers = [*headers, ("Content-Type", "application/json")]
            return start_response(status, headers, details)

        return app(environ, start)

    return typed


def encoded(message: msgspec.Struct | dict[str, Any]) -> flask.Response:
    """Return a message as JSON."""
    return flask.Response(msgspec.json.encode(message), mimetype="application/json")


def tag(*parts: object) -> str:
    """Return an entity tag that changes when any of the parts does."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:20]


def client_has(entity_tag: str) -> bool:
    """Tell whether the client already holds the answer with this tag."""
    return flask.request.if_none_match.contains_weak(entity_tag)


def not_modified() -> flask.Response:
    """Return the answer to a client that already holds it."""
    return flask.Response(status=304)


def revalidated(response: flask.Response, entity_tag: str) -> flask.Response:
    """Let the client keep the answer, and ask each time whether it still holds."""
    response.headers["Cache-Control"] = "no-cache"
    response.set_etag(entity_tag, weak=True)  # weak: the same for the compressed bytes
    return response


def forbid_storing(response: flask.Response) -> None:
    """Have the client not keep an answer that comes out otherwise when more was read."""
    response.headers["Cache-Control"] = UNKEPT


def is_storing_forbidden(response: flask.Response) -> bool:
    """Tell whether that was said of an answer."""
    return response.headers.get("Cache-Control") == UNKEPT


def finished(response: flask.Response) -> flask.Response:
    """Compress what is worth it, and add the headers that every answer carries."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    if response.mimetype == "text/html":
        response.headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
    return _compressed(response)


def _compressed(response: flask.Response) -> flask.Response:
    kind = response.mimetype or ""
    if response.status_code == 304 or response.is_streamed or not kind.startswith(COMPRESSIBLE):
        return response
    response.headers["Vary"] = "Accept-Encoding"
    body = response.get_data()
    is_wanted = flask.request.accept_encodings["gzip"] > 0
    if is_wanted and len(body) >= WORTH_COMPRESSING_BYTES:
        response.set_data(gzip.compress(body, COMPRESSION_LEVEL, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response
