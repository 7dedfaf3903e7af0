"""The server's problem responses as `laneway.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from laneway import errors
from laneway.errors import InvalidInput, LanewayError, ServerError, ServerUnreachable

# The part of the request, as the server writes it before a field's name.
_PLACES: Final = ("body.", "query.", "path.", "header.")
# For codes that only the server knows.
_BY_STATUS: Final[dict[int, type[LanewayError]]] = {
    HTTPStatus.UNAUTHORIZED: errors.Unauthenticated,
    HTTPStatus.FORBIDDEN: errors.Forbidden,
    HTTPStatus.NOT_FOUND: errors.NotFound,
    HTTPStatus.CONFLICT: errors.Refused,
    HTTPStatus.TOO_MANY_REQUESTS: errors.RateLimited,
    HTTPStatus.BAD_GATEWAY: ServerUnreachable,
    HTTPStatus.SERVICE_UNAVAILABLE: ServerUnreachable,
    HTTPStatus.GATEWAY_TIMEOUT: ServerUnreachable,
}


def _kinds(kind: type[LanewayError] = LanewayError) -> Iterator[type[LanewayError]]:
    yield kind
    for each in kind.__subclasses__():
        # Other modules define errors that a server never sends.
        if each.__module__ == errors.__name__:
            yield from _kinds(each)


_BY_CODE: Final = {kind.code: kind for kind in _kinds()}


def error_of(status: int, body: Any, url: str = "") -> LanewayError:
    """The exception for an error response of the server at `url`."""
    problem = body if isinstance(body, dict) else {}
    code = str(problem.get("code", ""))
    if status == HTTPStatus.NOT_FOUND and _is_unknown_path(problem):
        return ServerError(f"no Laneway API at {url}: check the address and its path")
    detail = str(problem.get("detail") or f"the server responded with status {status}")
    if status in (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
        error: LanewayError = _invalid(problem.get("errors"), detail)
    else:
        kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or ServerError
        error = ServerError(detail) if kind is InvalidInput else kind(detail)
    if isinstance(error, errors.QuotaExceeded):
        bound, limit = problem.get("bound"), problem.get("limit")
        error.bound = bound if isinstance(bound, str) else None
        error.limit = limit if type(limit) is int else None
    if request_id := problem.get("request_id"):
        error.add_note(f"request {request_id}")
    return error


def _is_unknown_path(problem: dict[str, Any]) -> bool:
    """Whether a router sent the 404: another server, or ours under a wrong path."""
    return "code" not in problem or problem.get("detail") == HTTPStatus.NOT_FOUND.phrase


def _invalid(errors: Any, detail: str) -> InvalidInput:
    found = [
        (_field_name(str(one["field"])), str(one["rule"]))
        for one in (errors if isinstance(errors, list) else ())
        # A proxy sends errors in other shapes.
        if isinstance(one, dict) and one.keys() >= {"field", "rule"}
    ]
    if not found:
        field, _, rule = detail.partition(": ")
        return InvalidInput(field, rule) if rule else InvalidInput("request", detail)
    (field, rule), *rest = found
    return InvalidInput(field, "; ".join([rule, *(f"{name}: {why}" for name, why in rest)]))


def _field_name(field: str) -> str:
    return next((field[len(p) :] for p in _PLACES if field.startswith(p)), field)
