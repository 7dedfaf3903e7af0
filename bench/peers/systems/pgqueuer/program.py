"""pgqueuer, in its environment."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries

from bench.peers import side

DSN = os.environ.get("DATABASE_URL", "")


class Submitter:
    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        count = len(payloads)
        bodies = [json.dumps(one).encode() for one in payloads]
        await self._queries.enqueue(["bench"] * count, bodies, [0] * count)

    async def submit(self, payload: dict[str, Any]) -> None:
        await self._queries.enqueue("bench", json.dumps(payload).encode())


class Program:
    packages = ("pgqueuer", "asyncpg", "uvloop")

    async def prepare(self) -> None:
        await Queries.from_asyncpg_connection(await asyncpg.connect(DSN)).install()

    async def submitter(self) -> Submitter:
        return Submitter(Queries.from_asyncpg_connection(await asyncpg.connect(DSN)))

    async def work(self) -> None:
        report = side.Report()
        queuer = PgQueuer.from_asyncpg_pool(await asyncpg.create_pool(DSN, min_size=2, max_size=4))

        @queuer.entrypoint("bench")
        async def bench(job: Any) -> None:
            await report.handle(json.loads(job.payload)["at"])

        running = asyncio.create_task(queuer.run(batch_size=int(os.environ["PEERS_BATCH"])))
        await asyncio.sleep(0.5)
        report.ready()
        await running


if __name__ == "__main__":
    side.main(Program(), uvloop.run)
