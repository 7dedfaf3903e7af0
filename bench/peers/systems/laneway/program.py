"""Laneway's tables and submits; `laneway worker` runs the jobs."""

from __future__ import annotations

import os
from typing import Any

from bench.peers import side
from bench.peers.systems.laneway.app import lw
from laneway.store.migrate import migrate


class Submitter:
    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        await lw.submit_many([("bench", one) for one in payloads])

    async def submit(self, payload: dict[str, Any]) -> None:
        await lw.submit("bench", payload)


class Program:
    packages: tuple[str, ...] = ("psycopg", "pydantic")

    async def prepare(self) -> None:
        migrate(os.environ["DATABASE_URL"])

    async def submitter(self) -> Submitter:
        await lw.__aenter__()
        return Submitter()

    async def work(self) -> None:
        raise NotImplementedError("`laneway worker` does this")


if __name__ == "__main__":
    side.main(Program())
