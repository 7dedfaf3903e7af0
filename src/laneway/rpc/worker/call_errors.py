"""Converts gRPC errors to Laneway's errors."""

from __future__ import annotations

from typing import Final

from grpc import StatusCode

from laneway.errors import (
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    LanewayError,
    NotFound,
    QuotaExceeded,
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
_UNREACHED: Final = "failed to connect to all addresses"
QUOTA: Final = ("max_queued: ", "max_queued_bytes: ")
# Repeating the call unchanged would fail again.
FINAL: Final = (Unauthenticated, Forbidden, InvalidInput, NotFound, Refused, ServerError)


def failure_of(address: str, code: StatusCode, details: str | None) -> LanewayError:
    """The Laneway error for a failed call.

    DatabaseUnavailable means that the call may be repeated, as for a worker with a database.
    """
    text = (details or code.name.lower().replace("_", " ")).splitlines()[0]
    if text.startswith(_UNREACHED):
        text = _connect_error(text)
    if code is StatusCode.INVALID_ARGUMENT:
        field, colon, rule = text.partition(": ")
        return InvalidInput(field, rule) if colon else InvalidInput("request", text)
    if code is StatusCode.FAILED_PRECONDITION and text.startswith(QUOTA):
        return QuotaExceeded(text, bound=text.partition(": ")[0])
    if code is StatusCode.RESOURCE_EXHAUSTED and "larger than max" in text:
        return InvalidInput("message", text)
    if code is StatusCode.UNIMPLEMENTED:
        return ServerError(f"{address} does not serve remote workers ({text})")
    if code in _SIMPLE:
        return _SIMPLE[code](text)
    return DatabaseUnavailable(f"server {address}: {text}")


def _connect_error(text: str) -> str:
    """The cause of a failed connection: gRPC lists each address, then the cause."""
    text = text.removesuffix(": OK")
    # The first bytes of its answer are not HTTP/2.
    if "http1" in text.lower() or "Failed parsing HTTP/2" in text:
        return "this is not a gRPC port but perhaps the HTTP port: use the server's --grpc-port"
    if "WRONG_VERSION_NUMBER" in text:
        return "TLS: the server does not use it"
    if "Hostname Verification" in text:
        return "TLS: its certificate is for another name"
    last = text.rpartition(": ")[2]
    return f"TLS: {last}" if "handshake failed" in text.lower() else last
