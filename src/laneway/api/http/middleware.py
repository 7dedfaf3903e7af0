"""Gives every request an id and a body limit, and every response its security headers."""

from __future__ import annotations

import logging
import re
import time
from contextvars import ContextVar
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from laneway.api.http.auth import SAFE, admit, expires_soon
from laneway.api.http.bodies import ANONYMOUS_BODY_LIMIT, UNREAD, body_limit
from laneway.api.http.problems import printable, refusal, unexpected
from laneway.api.http.responses import LARGE_VALUES_HEADER
from laneway.config.settings import Settings
from laneway.domain.actor import REQUEST_ID, new_request_id
from laneway.domain.json_writer import omitting_large_values
from laneway.domain.redaction import redact
from laneway.errors import LanewayError
from laneway.observability import tracing
from laneway.observability.counters import PROCESS
from laneway.observability.safe_logger import SafeLogger
from laneway.store.jobs import large_json_as_text

log = SafeLogger("laneway.api")

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    ),
    (b"cache-control", b"no-store"),
)
# Seconds, only in responses to a token that expires soon.
TOKEN_EXPIRES_HEADER: Final = b"laneway-token-expires-in"
# Polled every few seconds by machines; logged at debug level.
_QUIET: Final = ("/healthz", "/readyz", "/metrics")
_TLS_HEADERS: Final = (*_HEADERS, (b"strict-transport-security", b"max-age=31536000"))


class TooLarge(LanewayError):
    """The body is larger than the server accepts.

    Cure: Send less at once, or store large data elsewhere and submit a reference to it.
    """

    code = "too_large"


class RequestMiddleware:
    """Plain ASGI middleware, so that streams are not buffered."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # A request that the server makes for another request shares its id.
        own_id = scope.get(REQUEST_ID) or _id_of(headers)
        scope.setdefault("state", {})["request_id"] = own_id
        token = request_id.set(own_id)
        began = time.monotonic()
        sending = _Sending(scope, own_id, send, began)
        caller = tracing.receive(headers.get("traceparent"))
        try:
            declared = headers.get("content-length", "")
            # Routes copy stored JSON into responses without parsing it.
            with (
                large_json_as_text(),
                omitting_large_values(headers.get(LARGE_VALUES_HEADER) == "omit"),
            ):
                await self._app(scope, self._bounded(scope, receive, declared), sending)
        except Exception as error:
            if sending.status is not None:
                raise
            request = Request(scope)
            # Errors of middleware such as /mcp reach no exception handler of the routes.
            known = refusal(request, error) if isinstance(error, LanewayError) else None
            await (known or unexpected(request, error))(scope, receive, sending)
        finally:
            level = logging.DEBUG if scope["path"].endswith(_QUIET) else logging.INFO
            if log.isEnabledFor(level):
                log.log(
                    level,
                    "%s %s %s in %.0f ms",
                    scope["method"],
                    printable(scope["path"]),
                    sending.status,
                    (time.monotonic() - began) * 1000,
                )
            if sending.status is not None and scope["method"] not in SAFE and sending.status < 400:
                # Streams of this process see the change without waiting for a notification.
                scope["app"].state.hub.wake()
            if caller is not None:
                tracing.forget(caller)
            request_id.reset(token)

    def _bounded(self, scope: Scope, receive: Receive, declared: str) -> Receive:
        size = 0
        limit: int | None = None

        async def bounded() -> Any:
            nonlocal size, limit
            if limit is None:
                # Authenticate before any of the body is read.
                is_known = await admit(scope)
                limit = body_limit(scope, self._settings) if is_known else ANONYMOUS_BODY_LIMIT
                if declared.isdigit() and int(declared[:20]) > limit:
                    raise TooLarge(f"body: at most {limit} bytes")
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise TooLarge(f"body: at most {limit} bytes")
            return message

        return bounded


def _id_of(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return redact(given) if _ID.fullmatch(given) else new_request_id()


class _Sending:
    """Adds the common headers to a response and remembers its status."""

    def __init__(self, scope: Scope, own_id: str, send: Send, began: float) -> None:
        self._scope = scope
        self._began = began
        self._id = own_id
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            route = getattr(self._scope.get("route"), "path", "none")
            took_s = time.monotonic() - self._began
            PROCESS.answered(self._scope["method"], route, message["status"], took_s)
            headers: list[tuple[bytes, bytes]] = message["headers"]
            names = {name for name, _ in headers}
            headers.append((b"x-request-id", self._id.encode()))
            is_unread = self._scope.get(UNREAD)
            if is_unread is not None and is_unread() and b"connection" not in names:
                # Close instead of waiting for the rest of the body.
                headers.append((b"connection", b"close"))
            if (left_s := expires_soon(self._scope)) is not None:
                headers.append((TOKEN_EXPIRES_HEADER, b"%d" % left_s))
            more = _TLS_HEADERS if self._scope.get("scheme") == "https" else _HEADERS
            headers += [header for header in more if header[0] not in names]
        await self._send(message)


class RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = request_id.get()
        return True


def log_request_ids() -> None:
    """Add the request's id to the records of every log handler of this process."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(RequestIdFilter())
