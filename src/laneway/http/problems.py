"""Refusals of the server as the errors that every door raises."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from laneway import errors
from laneway.errors import InvalidInput, LanewayError, ServerError, ServerUnreachable

# Where in a request a field stands, as the server puts it before its name.
_PLACES: Final = ("body.", "query.", "path.", "header.")
# For codes that are the server's own.
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
        # Doors have errors of their own that nobody else knows.
        if each.__module__ == errors.__name__:
            yield from _kinds(each)


_BY_CODE: Final = {kind.code: kind for kind in _kinds()}


def error_of(status: int, body: Any, url: str = "") -> LanewayError:
    """What to raise for an answer of the server at `url` that is no success."""
    told = body if isinstance(body, dict) else {}
    code = str(told.get("code", ""))
    if status == HTTPStatus.NOT_FOUND and _is_no_route(told):
        return ServerError(f"there is no Laneway API at {url}: check the address and its path")
    said = str(told.get("detail") or f"the server answered {status}")
    if status in (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
        error: LanewayError = _invalid(told.get("errors"), said)
    else:
        kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or ServerError
        error = ServerError(said) if kind is InvalidInput else kind(said)
    if isinstance(error, errors.QuotaExceeded):
        bound, limit = told.get("bound"), told.get("limit")
        error.bound = bound if isinstance(bound, str) else None
        error.limit = limit if type(limit) is int else None
    if request_id := told.get("request_id"):
        error.add_note(f"request {request_id}")
    return error


def _is_no_route(told: dict[str, Any]) -> bool:
    """Whether nobody but a router said it: another server's, or ours under a wrong path."""
    return "code" not in told or told.get("detail") == HTTPStatus.NOT_FOUND.phrase


def _invalid(errors: Any, said: str) -> InvalidInput:
    found = [
        (_named(str(one["field"])), str(one["rule"]))
        for one in (errors if isinstance(errors, list) else ())
        # A proxy has errors of its own.
        if isinstance(one, dict) and one.keys() >= {"field", "rule"}
    ]
    if not found:
        field, _, rule = said.partition(": ")
        return InvalidInput(field, rule) if rule else InvalidInput("request", said)
    (field, rule), *rest = found
    return InvalidInput(field, "; ".join([rule, *(f"{name}: {why}" for name, why in rest)]))


def _named(field: str) -> str:
    return next((field[len(p) :] for p in _PLACES if field.startswith(p)), field)
