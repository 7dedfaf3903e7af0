"""oban, in its environment."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import uvloop
from oban import Oban, worker
from oban.schema import install

from bench.peers import side

DSN = os.environ.get("DATABASE_URL", "")
LIMIT = 1000
report: list[side.Report] = []


@worker(queue="bench")
class Bench:
    async def process(self, job: Any) -> None:
        await report[0].handle(job.args["at"])


class Submitter:
    def __init__(self, oban: Oban) -> None:
        self._oban = oban

    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        await self._oban.enqueue_many([Bench.new(one) for one in payloads])

    async def submit(self, payload: dict[str, Any]) -> None:
        await self._oban.enqueue(Bench.new(payload))


class Program:
    packages = ("oban", "psycopg", "uvloop")

    async def prepare(self) -> None:
        await install(await Oban.create_pool(DSN))

    async def submitter(self) -> Submitter:
        return Submitter(await Oban(pool=await Oban.create_pool(DSN)).start())

    async def work(self) -> None:
        report.append(side.Report())
        pool = await Oban.create_pool(DSN, min_size=4, max_size=10)
        async with Oban(pool=pool, queues={"bench": LIMIT}):
            report[0].ready()
            await asyncio.Event().wait()


if __name__ == "__main__":
    side.main(Program(), uvloop.run)
