"""What gRPC raises, told in Laneway's words."""

from __future__ import annotations

from typing import Final

from grpc import StatusCode

from laneway.errors import (
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    LanewayError,
    NotFound,
    Refused,
    ServerError,
    Unauthenticated,
)

_SIMPLE: Final[dict[StatusCode, type[LanewayError]]] = {
    StatusCode.UNAUTHENTICATED: Unauthenticated,
    StatusCode.PERMISSION_DENIED: Forbidden,
    StatusCode.NOT_FOUND: NotFound,
    StatusCode.FAILED_PRECONDITION: Refused,
}
_NOBODY: Final = "failed to connect to all addresses"
# Trying again as it is would end alike.
FINAL: Final = (Unauthenticated, Forbidden, InvalidInput, NotFound, Refused, ServerError)


def failure_of(address: str, code: StatusCode, details: str | None) -> LanewayError:
    """The Laneway error for a call that failed.

    DatabaseUnavailable, as where a worker has a database of its own: it may be said again.
    """
    said = (details or code.name.lower().replace("_", " ")).splitlines()[0]
    if said.startswith(_NOBODY):
        said = _why_nobody(said)
    if code is StatusCode.INVALID_ARGUMENT:
        field, colon, rule = said.partition(": ")
        return InvalidInput(field, rule) if colon else InvalidInput("request", said)
    if code is StatusCode.RESOURCE_EXHAUSTED and "larger than max" in said:
        return InvalidInput("message", said)
    if code is StatusCode.UNIMPLEMENTED:
        return ServerError(f"{address} serves no remote workers ({said})")
    if code in _SIMPLE:
        return _SIMPLE[code](said)
    return DatabaseUnavailable(f"server {address}: {said}")


def _why_nobody(said: str) -> str:
    """The channel tells each address once more, and what it calls the trouble; that comes last."""
    said = said.removesuffix(": OK")
    if "WRONG_VERSION_NUMBER" in said:
        return "TLS: it does not speak it"
    if "Hostname Verification" in said:
        return "TLS: its certificate is for another name"
    last = said.rpartition(": ")[2]
    return f"TLS: {last}" if "handshake failed" in said.lower() else last
