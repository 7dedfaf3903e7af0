"""One message over HTTP and its answer, by the package that speaks the protocol."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from laneway.http import AsyncClient
from laneway.mcp.endpoint import Inside, base_of
from laneway.mcp.server import make_server

# It tells of its start and end, which here is with every request.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)


def make(api: ASGIApp) -> Server[Any]:
    """What answers: all tools, for tokens decide who may use which."""

    @asynccontextmanager
    async def as_caller(request: Request) -> AsyncIterator[AsyncClient]:
        token = request.headers["authorization"].split(" ", 1)[-1].strip()
        inside = Inside(api, request.scope)
        base = base_of(request.scope)
        async with AsyncClient(base, token=token, transport=inside, door="mcp") as client:
            yield client

    return make_server(as_caller, is_writing=True).speaking


async def answer(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Answers in JSON and keeps nothing: the next message may go to another replica."""
    exchange = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with exchange.run():
        await exchange.handle_request(scope, receive, send)
