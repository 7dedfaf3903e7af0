"""/mcp on the server: streamable HTTP without sessions, with the caller's bearer token.

It is middleware, not a route: it sends requests with the caller's token to the API's routes. So it
makes no authorization decisions itself.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final

import httpx2
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from laneway.config.settings import Settings
from laneway.domain.actor import REQUEST_ID
from laneway.domain.payload import DEFAULT_LIMITS, PayloadLimits
from laneway.errors import InvalidInput
from laneway.mcp.large_payload import CUT, MESSAGE_LIMIT, Cut, PayloadRefused, cut_payload
from laneway.mcp.unreadable import refusal, unreadable

PATH: Final = "/mcp"
# Headers of a refusal that are passed on to the caller.
_KEPT: Final = ("content-type", "www-authenticate", "retry-after")


def install(app: FastAPI) -> None:
    """Add /mcp to an application of the API."""
    # Innermost, so that request ids, body limits and headers apply to it too.
    app.user_middleware.append(Middleware(McpEndpoint, api=app))


class McpEndpoint:
    """Handles /mcp and passes every other request on."""

    def __init__(self, app: ASGIApp, api: ASGIApp) -> None:
        self._app = app
        self._api = api
        self._server: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _path(scope) != PATH:
            await self._app(scope, receive, send)
            return
        refused = await self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        if self._server is None:
            # The import takes most of a second, and many servers never need it.
            await asyncio.to_thread(import_module, "laneway.mcp.exchange")
        from laneway.mcp import exchange

        if self._server is None:
            self._server = exchange.make(self._api)
        body = await Request(scope, receive).body()
        if len(body) > MESSAGE_LIMIT:
            try:
                cut = await asyncio.to_thread(cut_payload, body, _limits(scope))
            except PayloadRefused as broken:
                error_body = await asyncio.to_thread(refusal, broken.message, broken.error)
                await JSONResponse(error_body, HTTPStatus.BAD_REQUEST)(scope, receive, send)
                return
            except InvalidInput as error:
                await _too_large(scope, error)(scope, receive, send)
                return
            except (ValueError, RecursionError):
                pass  # reported by _unreadable below
            else:
                body, scope = cut.message, {**scope, CUT: cut}
        invalid = await asyncio.to_thread(_unreadable, scope, body)
        if invalid is not None:
            await invalid(scope, receive, send)
            return
        await exchange.handle(self._server, scope, _replay(body, receive), send)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if "origin" in headers:
            # Refuse web pages, including those of a rebound DNS name.
            return _problem(
                scope, HTTPStatus.FORBIDDEN, "forbidden", "requests from web pages are refused"
            )
        if scope["method"] != "POST":
            method = HTTPStatus.METHOD_NOT_ALLOWED
            return _problem(scope, method, "method_not_allowed", "send POST", Allow="POST")
        sent = {name: headers[name] for name in ("authorization",) if name in headers}
        async with httpx2.AsyncClient(transport=InProcessTransport(self._api, scope)) as client:
            response = await client.get(f"{base_url(scope)}/me", headers=sent)
        if response.status_code == HTTPStatus.OK:
            return None
        kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
        return Response(response.content, response.status_code, kept)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns a body that was read already, then later messages."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _too_large(scope: Scope, error: InvalidInput) -> Response:
    too_large = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return _problem(scope, too_large, "too_large", f"{error}: use POST /jobs")


def _limits(scope: Scope) -> PayloadLimits:
    settings: Settings | None = getattr(scope["app"].state, "settings", None)
    return DEFAULT_LIMITS if settings is None else settings.payload_limits


def _unreadable(scope: Scope, body: bytes) -> Response | None:
    error = unreadable(body, _limits(scope))
    return None if error is None else JSONResponse(error, HTTPStatus.BAD_REQUEST)


class InProcessTransport(httpx2.ASGITransport):
    """Sends requests to the API in this process, with the id and address of an outer request."""

    def __init__(self, api: ASGIApp, scope: Scope) -> None:
        address = scope.get("client") or ("127.0.0.1", 0)
        request_id = scope["state"]["request_id"]

        async def with_id(inner: Scope, receive: Receive, send: Send) -> None:
            await api({**inner, REQUEST_ID: request_id}, receive, send)

        super().__init__(with_id, client=tuple(address), root_path=scope.get("root_path", ""))
        self._cut: Cut | None = scope.get(CUT)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        cut = self._cut
        if cut is None or cut.mark not in (content := await request.aread()):
            return await super().handle_async_request(request)
        headers = [each for each in request.headers.raw if each[0].lower() != b"content-length"]
        whole = content.replace(cut.mark, cut.payload, 1)
        return await super().handle_async_request(
            httpx2.Request(request.method, request.url, headers=headers, content=whole)
        )


def _path(scope: Scope) -> str:
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def base_url(scope: Scope) -> str:
    """The base URL of the API for requests by `InProcessTransport`."""
    return f"http://localhost{scope.get('root_path', '')}"


def _problem(
    scope: Scope, status: HTTPStatus, code: str, detail: str, **headers: str
) -> JSONResponse:
    body = {
        "type": f"urn:laneway:problem:{code}",
        "title": status.phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
        "request_id": scope["state"]["request_id"],
    }
    return JSONResponse(body, int(status), headers, media_type="application/problem+json")
