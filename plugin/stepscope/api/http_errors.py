"""Error responses: an HTTP status and an `ApiError` in JSON, never a traceback."""

import logging

import flask
from werkzeug.exceptions import HTTPException

from stepscope.api.encoding import encoded, forbid_storing
from stepscope.api.messages import ApiError
from stepscope.base.errors import (
    MissingDataError,
    QueryError,
    StepscopeError,
    UnknownNameError,
    UnreadableError,
    in_one_line,
)
from stepscope.base.plain_text import plain

log = logging.getLogger(__name__)


CHANGED_REMEDY = (
    "Reload the page to read it again; if it has the same size and time, restart stepscope."
)
RETRY_SECONDS = 2
"""Pause before a request that was refused for lack of threads is worth repeating."""
RETRY_LATER_SECONDS = 10
TOO_SLOW_REMEDY = (
    "Select a time range, or repeat the request when fewer files are read: parts that are computed "
    "are kept. `--response-seconds` allows more time (TensorBoard: `--stepscope_response_seconds`)."
)


class RefusalError(Exception):
    """Ends a request with an `ApiError`."""

    def __init__(self, status: int, error: ApiError, retry_seconds: int | None = None) -> None:
        """`retry_seconds` is the pause before the request is worth repeating."""
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.retry_seconds = retry_seconds


def still_loading(name: str) -> RefusalError:
    """Return the refusal for a file that is being read."""
    message = f"{name} is still being read."
    return RefusalError(409, ApiError("still-loading", message, "Repeat the request in a moment."))


def cancelled(name: str) -> RefusalError:
    """Return the refusal for a file whose reading the user cancelled."""
    message = f"Reading {name} was cancelled."
    return RefusalError(409, ApiError("cancelled", message, "Start reading it again."))


def changed(name: str) -> RefusalError:
    """Return the refusal for a file that is no longer the one that was read."""
    message = f"{name} has changed since it was read."
    return RefusalError(409, ApiError("changed", message, CHANGED_REMEDY))


def busy(message: str) -> RefusalError:
    """Return the refusal of a server that has too much to do."""
    hint = f"Repeat the request in {RETRY_SECONDS} seconds."
    return RefusalError(503, ApiError("busy", message, hint), RETRY_SECONDS)


def too_slow(seconds: float) -> RefusalError:
    """Return the refusal for an answer that takes longer than the time limit."""
    message = f"Computing this answer took longer than {seconds:g} s, and was ended."
    return RefusalError(503, ApiError("too-slow", message, TOO_SLOW_REMEDY), RETRY_LATER_SECONDS)


def too_large(most_bytes: int) -> RefusalError:
    """Return the refusal for a request with a body."""
    message = f"The body of a request has at most {most_bytes:,} bytes."
    return RefusalError(413, ApiError("too-large", message, "Send the request without a body."))


def foreign(header: str) -> RefusalError:
    """Return the refusal for a request that only stepscope's page may send."""
    message = f"This request needs the header {header}."
    return RefusalError(403, ApiError("not-our-page", message, "Send the header with any value."))


def other_origin() -> RefusalError:
    """Return the refusal for a request of a page of another origin."""
    message = "This request comes from a page of another origin."
    return RefusalError(403, ApiError("other-origin", message, "Open the server's own page."))


def unreadable(message: str, remedy: str) -> RefusalError:
    """Return the refusal for a file that cannot be used."""
    return RefusalError(422, ApiError("unreadable", message, remedy))


OWN_HEADER = "X-Stepscope"
"""Header of the page's requests: a page of another origin cannot send it."""
STATUS_HEADER = "X-Stepscope-Status"
EXPECTED = frozenset(
    {
        "not-recorded",
        "still-loading",
        "cancelled",
        "changed",
        "unreadable",
        "bad-query",
        "busy",
        "too-slow",
    }
)
"""Refusals in normal use. Browsers log every status other than 200 as an error in their console, so
the page receives these with status 200 and the real status in `STATUS_HEADER`."""


def _refused(error: Exception) -> flask.Response:
    status, refusal = _refusal_of(error)
    response = encoded(refusal)
    response.status_code = status
    if refusal.code in EXPECTED and OWN_HEADER in flask.request.headers:
        response.status_code = 200
        response.headers[STATUS_HEADER] = str(status)
    if isinstance(error, RefusalError) and error.retry_seconds is not None:
        response.headers["Retry-After"] = str(error.retry_seconds)
    forbid_storing(response)
    return response


def _refusal_of(error: Exception) -> tuple[int, ApiError]:
    if isinstance(error, RefusalError):
        return error.status, error.error
    if isinstance(error, StepscopeError):
        return _stepscope_error(error)
    if isinstance(error, HTTPException) and error.code:
        name = error.name.lower().replace(" ", "-")
        return error.code, ApiError(name, error.description or error.name)
    log.error("a request failed: %s: %s", plain(flask.request.path), plain(in_one_line(error)))
    message = f"stepscope failed on this request ({type(error).__name__})."
    return 500, ApiError("failed", message, "The server's log has the traceback; please report it.")


def _stepscope_error(error: StepscopeError) -> tuple[int, ApiError]:
    match error:
        case UnknownNameError():
            return 404, ApiError("not-found", str(error))
        case MissingDataError():
            return 422, ApiError("not-recorded", error.reason, error.remedy)
        case UnreadableError():
            return 422, ApiError("unreadable", error.message, error.remedy)
    code = "bad-query" if isinstance(error, QueryError) else "bad-request"
    return 400, ApiError(code, str(error))


def register(app: flask.Flask) -> None:
    """Convert every error of the app to JSON."""
    app.register_error_handler(Exception, _refused)
