"""The async and the sync client of a server's HTTP API, with the same methods."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx2

from laneway.http.connection import RETRIES, TIMEOUT_S, Door, ServerAddress
from laneway.http.runners import AsyncRunner, SyncRunner
from laneway.http.verbs import Verbs


class Client(Verbs, SyncRunner):
    """A client of a server, usable from any thread.

    with Client("https://jobs.example.org", token) as client:
        job = client.submit("ingestion", {"path": "a.pdf"})
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        transport: httpx2.BaseTransport | None = None,
        door: Door = "python",
        allow_insecure: bool = False,
    ) -> None:
        """`allow_insecure` permits sending the token over plain HTTP to another host."""
        address = ServerAddress.checked(
            base_url,
            token,
            door=door,
            timeout=timeout,
            retries=retries,
            allow_insecure=allow_insecure,
        )
        super().__init__(address, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(Verbs, AsyncRunner):
    """The async client of a server: every method of Client, awaited.

    async with AsyncClient("https://jobs.example.org", token) as client:
        job = await client.submit("ingestion", {"path": "a.pdf"})
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
        door: Door = "python",
        allow_insecure: bool = False,
    ) -> None:
        """`allow_insecure` permits sending the token over plain HTTP to another host."""
        address = ServerAddress.checked(
            base_url,
            token,
            door=door,
            timeout=timeout,
            retries=retries,
            # In process: the token crosses no network.
            allow_insecure=allow_insecure or isinstance(transport, httpx2.ASGITransport),
        )
        super().__init__(address, transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
