"""celery with Redis, in its environment."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, signals

from bench.peers import side

app = Celery("bench", broker=os.environ.get("REDIS_URL", ""))
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=128,
    broker_connection_retry_on_startup=True,
)
report: list[side.Report] = []


@app.task(name="bench")
def bench(at: int, text: str) -> None:
    report[0].handle_in_thread(at)


@signals.worker_ready.connect
def _ready(**_: Any) -> None:
    report[0].ready()


class Submitter:
    async def submit_many(self, payloads: list[dict[str, Any]]) -> None:
        # It has no call for many; a shared producer saves the choice of one for each.
        with app.producer_pool.acquire(block=True) as producer:
            for one in payloads:
                bench.apply_async(kwargs=one, producer=producer)

    async def submit(self, payload: dict[str, Any]) -> None:
        bench.apply_async(kwargs=payload)


class Program:
    packages = ("celery", "kombu", "redis")

    async def prepare(self) -> None:
        return None

    async def submitter(self) -> Submitter:
        return Submitter()

    async def work(self) -> None:
        report.append(side.Report())
        name = f"bench-{os.getpid()}@%h"
        # One process without children is its fastest; jobs that wait want threads.
        is_waiting = os.environ.get("PEERS_WORK", "").startswith("sleep")
        pool = ["--pool=threads", "--concurrency=100"] if is_waiting else ["--pool=solo"]
        options = ["--loglevel=ERROR", "--without-gossip", "--without-mingle"]
        app.worker_main(["worker", *pool, *options, f"--hostname={name}"])


if __name__ == "__main__":
    side.main(Program())
