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


class RefusalError(Exception):
    """Ends a request with an `ApiError`."""

    def __init__(self, status: int, error: ApiError) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error


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
    {"not-recorded", "still-loading", "cancelled", "changed", "unreadable", "bad-query", "busy"}
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
