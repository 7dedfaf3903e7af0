"""Errors as RFC 9457 problem details, each with the stable code of its error class."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from math import ceil
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from laneway.api.http.auth import known_caller
from laneway.api.http.paging import MAX_ERRORS
from laneway.config.settings import Settings
from laneway.control.missing import SEEN_BY, with_names
from laneway.domain.broken_json import broken_rule
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.text import escape_text
from laneway.errors import InvalidInput, LanewayError, NotFound, QuotaExceeded, RateLimited
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway.api")

MEDIA_TYPE: Final = "application/problem+json"
# By error code; any other error is a bug and becomes 500.
STATUS: Final[dict[str, HTTPStatus]] = {
    "invalid_input": HTTPStatus.UNPROCESSABLE_ENTITY,
    "not_found": HTTPStatus.NOT_FOUND,
    "refused": HTTPStatus.CONFLICT,
    "stale_attempt": HTTPStatus.CONFLICT,
    "job_failed": HTTPStatus.CONFLICT,
    "unauthenticated": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "rate_limited": HTTPStatus.TOO_MANY_REQUESTS,
    "quota_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "idempotency_mismatch": HTTPStatus.UNPROCESSABLE_ENTITY,
    "idempotency_under_way": HTTPStatus.CONFLICT,
    "database_unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "schema_mismatch": HTTPStatus.SERVICE_UNAVAILABLE,
    "unsuitable_database": HTTPStatus.SERVICE_UNAVAILABLE,
    "unreadable_value": HTTPStatus.INTERNAL_SERVER_ERROR,
}
_HEADERS: Final[dict[HTTPStatus, dict[str, str]]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "1"},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "1"},
}
_BY_STATUS: Final = {404: "not_found", 405: "method_not_allowed"}
_UNAVAILABLE: Final = "the database cannot be reached, or has another schema than this server needs"
# Exceptions that reading a body may raise.
_OF_BODIES: Final = (ValueError, RecursionError, ClientDisconnect)
_RETRY_AFTER: Final = {
    "description": "Seconds until the request may be sent again",
    "schema": {"type": "integer", "minimum": 1},
}


class FieldError(BaseModel):
    """A field and the rule it violates."""

    field: str
    rule: str


class Problem(BaseModel):
    """An error, for programs (`code`) and for people (`detail`)."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="A URI that identifies the kind of problem")
    title: str
    status: int
    code: str = Field(description="Stable: programs may rely on it")
    detail: str
    request_id: str
    errors: list[FieldError] | None = None
    bound: str | None = Field(default=None, description="With `quota_exceeded`: the bound's name")
    limit: int | None = Field(default=None, description="With `quota_exceeded`: the bound's value")


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of an authenticated route: the usual problems and these."""
    return problem_responses(401, 403, 422, 429, 503, *statuses)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route with exactly these problems."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    later = {"headers": {"Retry-After": _RETRY_AFTER}}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": content,
            **(later if status in (429, 503) else {}),
        }
        for status in sorted(set(statuses))
    }


def problem(
    request: Request,
    status: HTTPStatus,
    code: str,
    detail: str,
    errors: list[FieldError] | None = None,
    *,
    bound: str | None = None,
    limit: int | None = None,
) -> JSONResponse:
    """The response to a refused request."""
    # Applications that use Laneway's exception handlers may not set request ids.
    own_id = request.scope.get("state", {}).get("request_id")
    body = Problem(
        type=f"urn:laneway:problem:{code}",
        title=status.phrase,
        status=int(status),
        code=code,
        detail=escape_text(detail),
        request_id="" if own_id is None else str(own_id),
        errors=errors,
        bound=bound,
        limit=limit,
    )
    return JSONResponse(
        body.model_dump(exclude_none=True, exclude={"request_id"} if own_id is None else None),
        status_code=int(status),
        media_type=MEDIA_TYPE,
        headers=_HEADERS.get(status),
    )


def unexpected(request: Request, error: Exception) -> JSONResponse:
    """The response to a bug; the log has the details under the request's id."""
    log.error("%s %s failed", request.method, printable(request.url.path), exc_info=error)
    return problem(
        request,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal",
        "internal error; the server's log has the details under this request_id",
    )


def printable(path: str) -> str:
    """A path from a client, escaped so that it cannot forge log lines."""
    return path.encode("unicode_escape").decode()


def refusal(request: Request, error: LanewayError) -> JSONResponse | None:
    """The response to an error that the caller can act on; None for any other error."""
    status = STATUS.get(error.code)
    if status is None:
        return None
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        # The message names hosts and accounts: log it, but do not send it.
        log.warning("%s: %s", error.code, error)
        return problem(request, status, error.code, _UNAVAILABLE)
    if isinstance(error, InvalidInput):
        fields = [FieldError(field=escape_text(error.field), rule=escape_text(error.rule))]
        return problem(request, status, error.code, str(error), fields)
    bound, limit = (error.bound, error.limit) if isinstance(error, QuotaExceeded) else (None, None)
    response = problem(request, status, error.code, str(error), bound=bound, limit=limit)
    if isinstance(error, RateLimited):
        response.headers["Retry-After"] = str(ceil(error.retry_after) or 1)
    return response


def install(app: FastAPI) -> None:
    """Turn every error of a route into a problem; RequestMiddleware handles unexpected ones."""

    def _known(request: Request, error: LanewayError) -> JSONResponse:
        return refusal(request, error) or unexpected(request, error)

    @app.exception_handler(NotFound)
    async def _missing(request: Request, error: NotFound) -> JSONResponse:
        who = known_caller(request)
        seen_by = SEEN_BY.get(error.kind)
        # Other callers must not learn the names of objects they may not see.
        if who is not None and seen_by is not None and who.access.allows_everywhere(seen_by):
            error = await with_names(who.database, error)
        return _known(request, error)

    app.add_exception_handler(LanewayError, _known)  # type: ignore[arg-type]

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [_field_error(one) for one in error.errors()[:MAX_ERRORS]]
        detail = "; ".join(f"{one.field}: {one.rule}" for one in errors)
        return problem(request, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input", detail, errors)

    @app.exception_handler(ClientDisconnect)
    def _gone(request: Request, error: ClientDisconnect) -> JSONResponse:
        # The client is gone; this only keeps the error from being logged as a bug.
        return _known(request, InvalidInput("body", "ended before it was complete"))

    @app.exception_handler(HTTPException)
    async def _plain(request: Request, error: HTTPException) -> JSONResponse:
        cause = error.__cause__
        if isinstance(cause, LanewayError):
            return _known(request, cause)
        if isinstance(cause, Exception) and not isinstance(cause, _OF_BODIES):
            return unexpected(request, cause)
        if error.status_code == HTTPStatus.BAD_REQUEST:
            return _known(request, await _unreadable(request))
        status = HTTPStatus(error.status_code)
        code = _BY_STATUS.get(int(status), "refused")
        response = problem(request, status, code, str(error.detail))
        response.headers.update(error.headers or {})
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            response.headers["Allow"] = _allowed(request)
        return response


async def _unreadable(request: Request) -> InvalidInput:
    """The place and rule of JSON that Python cannot parse, such as nesting that is too deep."""
    try:
        body = await request.body()
    except (RuntimeError, ClientDisconnect):
        return InvalidInput("body", "cannot be read as JSON")
    # Applications that use Laneway's exception handlers may have other settings.
    settings = getattr(request.app.state, "settings", None)
    limits = settings.payload_limits if isinstance(settings, Settings) else DEFAULT_LIMITS
    return await asyncio.to_thread(broken_rule, body, limits, "body", above=1)


def _field_error(one: Any) -> FieldError:
    field, rule = ".".join(str(part) for part in one["loc"]), one["msg"]
    if one["type"] == "json_invalid":
        field = "body"
        rule = f"is not JSON: {one.get('ctx', {}).get('error', rule)} at {one['loc'][-1]}"
    elif field == "body" and isinstance(one.get("input"), (str, bytes)):
        rule = "must be a JSON object, sent with Content-Type: application/json"
    return FieldError(field=escape_text(field), rule=escape_text(rule))


def _allowed(request: Request) -> str:
    """The methods of all routes with this path; Starlette reports only the first route's."""
    path = get_route_path(request.scope)
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    matching = [route for route in routes if route.path_regex.match(path)]
    return ", ".join(sorted({each for route in matching for each in route.methods or ()}))
