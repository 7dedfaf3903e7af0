"""/mcp on the server: streamable HTTP without sessions, as whoever the bearer token belongs to.

It stands before the routes and not among them: what it does it asks of them, by requests of its own
with the token that came. So nothing here decides who may do what.
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
# Of a refusal, what its reader needs.
_KEPT: Final = ("content-type", "www-authenticate", "retry-after")


def install(app: FastAPI) -> None:
    """Opens the door on an application of the API."""
    # Innermost: ids, bounds and headers of all requests are of these too.
    app.user_middleware.append(Middleware(McpEndpoint, api=app))


class McpEndpoint:
    """Answers /mcp itself and lets everything else pass."""

    def __init__(self, app: ASGIApp, api: ASGIApp) -> None:
        self._app = app
        self._api = api
        self._server: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _path(scope) != PATH:
            await self._app(scope, receive, send)
            return
        turned_away = await self._refusal(scope)
        if turned_away is not None:
            await turned_away(scope, receive, send)
            return
        if self._server is None:
            # Most of a second, and many servers are never asked.
            await asyncio.to_thread(import_module, "laneway.mcp.exchange")
        from laneway.mcp import exchange

        if self._server is None:
            self._server = exchange.make(self._api)
        body = await Request(scope, receive).body()
        if len(body) > MESSAGE_LIMIT:
            try:
                cut = await asyncio.to_thread(cut_payload, body, _limits(scope))
            except PayloadRefused as refused:
                told = await asyncio.to_thread(refusal, refused.message, refused.error)
                await JSONResponse(told, HTTPStatus.BAD_REQUEST)(scope, receive, send)
                return
            except InvalidInput as error:
                await _too_large(scope, error)(scope, receive, send)
                return
            except (ValueError, RecursionError):
                pass  # said below
            else:
                body, scope = cut.message, {**scope, CUT: cut}
        unreadable = await asyncio.to_thread(_unreadable, scope, body)
        if unreadable is not None:
            await unreadable(scope, receive, send)
            return
        await exchange.answer(self._server, scope, _again(body, receive), send)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if "origin" in headers:
            # A page of whatever site, also one whose name was made to point here.
            return _problem(
                scope, HTTPStatus.FORBIDDEN, "forbidden", "pages of browsers are refused"
            )
        if scope["method"] != "POST":
            method = HTTPStatus.METHOD_NOT_ALLOWED
            return _problem(scope, method, "method_not_allowed", "send POST", Allow="POST")
        sent = {name: headers[name] for name in ("authorization",) if name in headers}
        async with httpx2.AsyncClient(transport=Inside(self._api, scope)) as inside:
            answer = await inside.get(f"{base_of(scope)}/me", headers=sent)
        if answer.status_code == HTTPStatus.OK:
            return None
        kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
        return Response(answer.content, answer.status_code, kept)


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read once more, then what comes after it."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _too_large(scope: Scope, error: InvalidInput) -> Response:
    too_large = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return _problem(scope, too_large, "too_large", f"{error}: use POST /jobs")


def _limits(scope: Scope) -> PayloadLimits:
    settings: Settings | None = getattr(scope["app"].state, "settings", None)
    return DEFAULT_LIMITS if settings is None else settings.payload_limits


def _unreadable(scope: Scope, body: bytes) -> Response | None:
    said = unreadable(body, _limits(scope))
    return None if said is None else JSONResponse(said, HTTPStatus.BAD_REQUEST)


class Inside(httpx2.ASGITransport):
    """To the API in this process, for a request that came from outside."""

    def __init__(self, api: ASGIApp, scope: Scope) -> None:
        address = scope.get("client") or ("127.0.0.1", 0)
        request_id = scope["state"]["request_id"]

        async def within(inner: Scope, receive: Receive, send: Send) -> None:
            await api({**inner, REQUEST_ID: request_id}, receive, send)

        super().__init__(within, client=tuple(address), root_path=scope.get("root_path", ""))
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


def base_of(scope: Scope) -> str:
    """Where the API is, as `Inside` is asked."""
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
