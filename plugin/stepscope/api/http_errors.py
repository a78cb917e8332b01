"""Why a request has no answer, with its HTTP status: JSON always, a traceback never."""

import logging

import flask
from werkzeug.exceptions import HTTPException

from stepscope.api.encoding import encoded, forbid_storing
from stepscope.api.messages import ApiError
from stepscope.base.errors import (
    MissingDataError,
    StepscopeError,
    UnknownNameError,
    UnreadableError,
    in_one_line,
)

log = logging.getLogger(__name__)


class RefusalError(Exception):
    """Ends a request with an `ApiError`."""

    def __init__(self, status: int, error: ApiError) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error


def still_loading(name: str) -> RefusalError:
    """Say that the answer will come, and to ask again."""
    message = f"{name} is still being read"
    return RefusalError(409, ApiError("still-loading", message, "Ask again in a moment."))


def cancelled(name: str) -> RefusalError:
    """Say that the user did not want it read."""
    message = f"The reading of {name} was cancelled."
    return RefusalError(409, ApiError("cancelled", message, "Have it read again."))


def foreign(header: str) -> RefusalError:
    """Say that only our own page may ask this."""
    message = f"this is asked with the header {header}"
    return RefusalError(403, ApiError("not-our-page", message, "Send it, with any value."))


def unreadable(message: str, remedy: str) -> RefusalError:
    """Say that a file cannot be used, and why."""
    return RefusalError(422, ApiError("unreadable", message, remedy))


OWN_HEADER = "X-Stepscope"
"""What our own page sends: no page of another origin can."""
STATUS_HEADER = "X-Stepscope-Status"
EXPECTED = frozenset({"not-recorded", "still-loading", "cancelled", "unreadable"})
"""Refusals that are part of everyday use. Browsers write every other status than 200 to their
console as an error, so our own page gets these with 200, and the status in a header of ours."""


def _refused(error: Exception) -> flask.Response:
    status, answer = _told(error)
    response = encoded(answer)
    response.status_code = status
    if answer.code in EXPECTED and OWN_HEADER in flask.request.headers:
        response.status_code = 200
        response.headers[STATUS_HEADER] = str(status)
    forbid_storing(response)
    return response


def _told(error: Exception) -> tuple[int, ApiError]:
    if isinstance(error, RefusalError):
        return error.status, error.error
    if isinstance(error, StepscopeError):
        return _refusal(error)
    if isinstance(error, HTTPException) and error.code:
        name = error.name.lower().replace(" ", "-")
        return error.code, ApiError(name, error.description or error.name)
    log.error("a request failed: %s: %s", flask.request.path, in_one_line(error))
    message = f"stepscope failed on this ({type(error).__name__})"
    return 500, ApiError("failed", message, "The server's log says where; please report it.")


def _refusal(error: StepscopeError) -> tuple[int, ApiError]:
    match error:
        case UnknownNameError():
            return 404, ApiError("not-found", str(error))
        case MissingDataError():
            return 422, ApiError("not-recorded", error.reason, error.remedy)
        case UnreadableError():
            return 422, ApiError("unreadable", error.message, error.remedy)
    return 400, ApiError("bad-request", str(error))


def register(app: flask.Flask) -> None:
    """Answer every error of the app in JSON."""
    app.register_error_handler(Exception, _refused)
