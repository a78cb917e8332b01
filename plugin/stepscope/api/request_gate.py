"""Limit of the requests that are served at once, and the refusal of those that wait too long."""

from collections.abc import Iterable
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

import msgspec

from stepscope.api import http_errors
from stepscope.api.encoding import JSON, NO_STORE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

REQUEST_COUNT = 40
"""Requests at once: those that wait for computations and downloads, and 8 small ones."""
MOST_WAIT_SECONDS = 0.5
"""Longest wait of a request before it is served."""


def refused(start: "StartResponse") -> Iterable[bytes]:
    """Respond that the server is busy, with as little work as possible."""
    refusal = http_errors.busy("Too many requests wait for an answer.")
    start(
        "503 Service Unavailable",
        [
            ("Content-Type", JSON),
            ("Retry-After", str(refusal.retry_seconds)),
            ("Cache-Control", NO_STORE),
        ],
    )
    return [msgspec.json.encode(refusal.error)]


def gated(app: "WSGIApplication") -> "WSGIApplication":
    """Limit the requests that an app serves at once, for a server that has a thread for each."""
    slots = BoundedSemaphore(REQUEST_COUNT)

    def respond(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if not slots.acquire(timeout=MOST_WAIT_SECONDS):
            return refused(start)
        try:
            return app(environ, start)
        finally:
            slots.release()

    return respond
