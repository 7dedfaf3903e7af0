"""awa, in its environment."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any

from awa import AsyncClient

from bench.peers import side

# Its driver wants a host before the socket directory.
DSN = os.environ.get("DATABASE_URL", "").replace("@/", "@localhost/")
WORKERS = 512


@dataclass
class Bench:
    at: int
    text: str


class Submitter:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        await self._client.enqueue_many_copy([Bench(**one) for one in payloads], queue="bench")

    async def submit(self, payload: dict[str, Any]) -> None:
        await self._client.insert(Bench(**payload), queue="bench")


class Program:
    packages = ("awa-pg",)

    async def prepare(self) -> None:
        client = AsyncClient(DSN)
        await client.migrate()
        # Otherwise the first worker does this, and nothing can be submitted in bulk before it.
        await client.install_queue_storage()
        await client.close()

    async def submitter(self) -> Submitter:
        return Submitter(AsyncClient(DSN))

    async def work(self) -> None:
        report = side.Report()
        client = AsyncClient(DSN, max_connections=10)

        @client.task(Bench, queue="bench")
        async def bench(job: Any) -> None:
            await report.handle(job.args.at)

        await client.start([{"name": "bench", "max_workers": WORKERS}])
        report.ready()
        await asyncio.Event().wait()


if __name__ == "__main__":
    side.main(Program())
