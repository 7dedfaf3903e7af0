"""`laneway mcp`"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import connection

if TYPE_CHECKING:
    from laneway.http import AsyncClient


def mcp(
    write: Annotated[
        bool,
        typer.Option("--write", help="Also offer tools that submit, approve, cancel and tune."),
    ] = False,
) -> None:
    """Serve MCP over stdin and stdout; read-only unless --write."""
    import asyncio

    asyncio.run(_serve(is_writing=write))


async def _serve(*, is_writing: bool) -> None:
    from laneway.domain.payload import DEFAULT_LIMITS
    from laneway.mcp.server import always, make_server
    from laneway.mcp.stdio import serve

    limits = DEFAULT_LIMITS if connection.is_remote() else connection.settings().payload_limits
    async with connection.connected("mcp") if connection.is_remote() else _local_client() as client:
        # Report an unreachable server now, not later to the assistant.
        await client.get_me()
        await serve(make_server(always(client), is_writing=is_writing), limits)


@asynccontextmanager
async def _local_client() -> AsyncIterator[AsyncClient]:
    """A client of the API in this process, only for the account that runs it."""
    import httpx2

    from laneway.api.app import make_app
    from laneway.api.http.local_auth import local_token
    from laneway.http import AsyncClient

    async with connection.opened() as database:
        app = make_app(database.settings, database)
        token = local_token(app, connection.principal())
        transport = httpx2.ASGITransport(app)
        try:
            async with AsyncClient(
                "http://localhost", token, transport=transport, door="mcp"
            ) as client:
                yield client
        finally:
            await app.state.close()
