"""Laneway's errors in the routes of a Flask application, as HTTP responses.

`lw.sync` submits inside a request; `lw.sync.worker()` runs jobs in the same process.
"""

# ruff: noqa: E402 - a missing package is named before the import below fails

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from laneway.extras import require_package

require_package("flask", "laneway.integrations.flask", "flask")

from flask import Flask, Response

from laneway.errors import DatabaseUnavailable, InvalidInput, LanewayError, NotFound, Refused
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

MEDIA_TYPE: Final = "application/problem+json"
# Other errors are bugs of the application, or refuse its own token.
_STATUS: Final[dict[type[LanewayError], HTTPStatus]] = {
    InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFound: HTTPStatus.NOT_FOUND,
    Refused: HTTPStatus.CONFLICT,
    DatabaseUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


def install_errors(app: Flask) -> None:
    """Answers Laneway's errors in routes of `app` with problem details (RFC 9457) instead of 500.

    `NotFound` 404, `InvalidInput` 422 with field and rule, `Refused` 409, `DatabaseUnavailable`
    503 with `Retry-After`. Other errors are not handled. An error handler that the application
    registers later for one of these replaces it.
    """
    for kind in _STATUS:
        app.register_error_handler(kind, _respond)


def _respond(error: LanewayError) -> Response:
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    body: dict[str, Any] = {
        "type": f"urn:laneway:problem:{error.code}",
        "title": status.phrase,
        "status": int(status),
        "code": error.code,
        "detail": str(error),
    }
    headers = {}
    if isinstance(error, InvalidInput):
        body["errors"] = [{"field": error.field, "rule": error.rule}]
    elif status is HTTPStatus.SERVICE_UNAVAILABLE:
        # The message names hosts and accounts: log it, but do not send it.
        log.warning("%s: %s", error.code, error)
        body["detail"], headers["Retry-After"] = "the database cannot be used now", "1"
    return Response(json.dumps(body), int(status), headers, mimetype=MEDIA_TYPE)
