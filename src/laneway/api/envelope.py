"""What every request and answer gets: an id, a bound on its body, and headers browsers heed."""

from __future__ import annotations

import logging
import re
import time
from contextvars import ContextVar
from typing import Any, Final
from uuid import uuid4

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from laneway.api.problems import printable, unexpected
from laneway.errors import LanewayError

log = logging.getLogger("laneway.api")

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; form-action 'self'",
    "Cache-Control": "no-store",
}
_TLS_HEADERS: Final = {"Strict-Transport-Security": "max-age=31536000"}


class TooLarge(LanewayError):
    """The body is larger than the server takes."""

    code = "too_large"


class Envelope:
    """Pure ASGI, so that streams pass through untouched."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._max = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        own_id = given if _ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = own_id
        token = request_id.set(own_id)
        sending = _Sending(scope, own_id, send)
        began = time.monotonic()
        try:
            await self._app(scope, self._bounded(scope, receive), sending)
        except Exception as error:
            if sending.status is not None:
                raise
            await unexpected(Request(scope), error)(scope, receive, sending)
        finally:
            log.info(
                "%s %s %s in %.0f ms",
                scope["method"],
                printable(scope["path"]),
                sending.status,
                (time.monotonic() - began) * 1000,
            )
            request_id.reset(token)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        refusal = f"body: at most {self._max} bytes"
        declared = Headers(scope=scope).get("content-length", "")
        seen = 0

        async def receiving() -> Any:
            nonlocal seen
            if declared.isdigit() and int(declared[:20]) > self._max:
                raise TooLarge(refusal)
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max:
                raise TooLarge(refusal)
            return message

        return receiving


class _Sending:
    """Sends on, with the headers of every answer, and remembers its status."""

    def __init__(self, scope: Scope, own_id: str, send: Send) -> None:
        self._scope = scope
        self._id = own_id
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._id
            more = _TLS_HEADERS if self._scope.get("scheme") == "https" else {}
            for name, value in (_HEADERS | more).items():
                headers.setdefault(name, value)
        await self._send(message)
