"""dramatiq with Redis, in its environment."""

from __future__ import annotations

import os
import sys
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers import side

THREADS = 100 if os.environ.get("PEERS_WORK", "").startswith("sleep") else 32
broker = RedisBroker(url=os.environ.get("REDIS_URL", ""))
dramatiq.set_broker(broker)
report: list[side.Report] = []


@dramatiq.actor(queue_name="bench")
def bench(at: int, text: str) -> None:
    report[0].handle_in_thread(at)


class Ready(dramatiq.Middleware):
    def after_worker_boot(self, broker: Any, worker: Any) -> None:
        report[0].ready()


class Submitter:
    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        # It has no call for many.
        for one in payloads:
            bench.send(**one)

    async def submit(self, payload: dict[str, Any]) -> None:
        bench.send(**payload)


class Program:
    packages = ("dramatiq", "redis")

    async def prepare(self) -> None:
        return None

    async def submitter(self) -> Submitter:
        return Submitter()

    async def work(self) -> None:
        """Start the worker of the library in this process, as its command does in each child."""
        import asyncio

        report.append(side.Report())
        broker.add_middleware(Ready())
        worker = dramatiq.Worker(broker, worker_threads=THREADS)
        worker.start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    side.main(Program())
    sys.exit()
