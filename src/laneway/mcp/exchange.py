"""Handles one MCP message over HTTP, with the MCP package."""

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
from laneway.mcp.endpoint import InProcessTransport, base_url
from laneway.mcp.server import make_server

# It logs its start and end, which happen with every request here.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)


def make(api: ASGIApp) -> Server[Any]:
    """The MCP server with all tools; the caller's token decides which of them it may use."""

    @asynccontextmanager
    async def as_caller(request: Request) -> AsyncIterator[AsyncClient]:
        token = request.headers["authorization"].split(" ", 1)[-1].strip()
        transport = InProcessTransport(api, request.scope)
        base = base_url(request.scope)
        async with AsyncClient(base, token=token, transport=transport, door="mcp") as client:
            yield client

    return make_server(as_caller, is_writing=True).lowlevel


async def handle(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Respond in JSON without a session: the next message may reach another replica."""
    requests = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with requests.run():
        await requests.handle_request(scope, receive, send)
