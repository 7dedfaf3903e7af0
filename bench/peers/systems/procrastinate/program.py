"""procrastinate, in its environment."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from procrastinate import App, PsycopgConnector

from bench.peers import side

# Ten connections do more empty jobs than a hundred; jobs that wait want more.
CONCURRENCY = 100 if os.environ.get("PEERS_WORK", "").startswith("sleep") else 10
app = App(
    connector=PsycopgConnector(conninfo=os.environ.get("DATABASE_URL", ""), min_size=4, max_size=14)
)
report: list[side.Report] = []


@app.task(name="bench")
async def bench(at: int, text: str) -> None:
    await report[0].handle(at)


class Submitter:
    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        await bench.batch_defer_async(*payloads)

    async def submit(self, payload: dict[str, Any]) -> None:
        await bench.defer_async(**payload)


class Program:
    packages = ("procrastinate", "psycopg", "psycopg-pool")

    async def prepare(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def submitter(self) -> Submitter:
        await app.open_async()
        return Submitter()

    async def work(self) -> None:
        report.append(side.Report())
        async with app.open_async():
            running = asyncio.create_task(app.run_worker_async(concurrency=CONCURRENCY))
            await asyncio.sleep(0.5)
            report[0].ready()
            await running


if __name__ == "__main__":
    side.main(Program())
