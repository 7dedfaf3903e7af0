"""Correct uses of typed handlers: no type checker reports anything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from laneway import Analysis, Context, JobHandle, JobType, Laneway, RetryPolicy, SyncContext
from laneway.client import NewJobSpec

lw = Laneway("postgresql://localhost/app", concurrency=8, log_format="json", worker=False)


@lw.on_start
async def load(resources: Any) -> None:
    resources.greeting = "hello"


@lw.check("is_open", timeout=5)
def is_open() -> bool:
    return True


@lw.schedule("nightly", cron="0 3 * * *", payload={"path": "a.pdf"}, check="is_open", tags=["a"])
@lw.handler(
    "ingestion", lane="docs", max_retries=5, timeout=600, retry=RetryPolicy(base=2), limits=["llm"]
)
async def ingest(ctx: Context, path: str, pages: int = 10, *, fast: bool = False) -> dict[str, int]:
    await ctx.progress(pages, pages)
    return {path: pages if fast else 0}


@lw.handler("rebuild", approval=True, isolation="process", memory_mb=512)
def rebuild(ctx: SyncContext, index: str) -> str:
    ctx.progress(1, 1)
    return index


@rebuild.analyze
def plan(index: str) -> Analysis:
    return Analysis(plan=index)


@lw.handler("either")
def either(ctx: Context | SyncContext) -> None:
    ctx.log("done")


@lw.handler("sum")
async def add(ctx: Context, /, **numbers: int) -> int:
    return sum(numbers.values())


lw.schedule("hourly", "rebuild", cron="0 * * * *", payload={"index": "a"}, missed="skip")


async def submit() -> int:
    job = await ingest.submit(path="a.pdf", pages=3)
    by_position: JobHandle[dict[str, int]] = await ingest.submit("a.pdf", 3, fast=True)
    later = await ingest.options(delay=timedelta(minutes=1), tags=["a"]).submit(path="a.pdf")
    pages: dict[str, int] = await job.wait(timeout=30)
    await by_position.cancel("late")
    text: str = await (await rebuild.submit(index="a")).wait()
    result = await (await lw.submit("ingestion", {"path": text}, priority=5, unique_key="a")).wait()
    direct: dict[str, int] = await ingest(object(), "a.pdf")
    total: int = await (await add.submit(a=1, b=2)).wait()
    return total + len(pages) + len(direct) + int(result["a.pdf"]) + later.duplicate


async def submit_batch() -> str:
    same = await lw.submit_many([ingest.job(path="a.pdf"), ingest.job("b.pdf", pages=2)])
    counts: dict[str, int] = await same[0].wait()
    mixed = await lw.submit_many(
        [
            ingest.options(priority=5).job(path="a.pdf"),
            ("rebuild", {"index": "a"}),
            ("rebuild", {"index": "a"}, {"priority": 5}),
            {"job_type": "rebuild", "payload": {"index": "a"}, "tags": ["a"]},
            NewJobSpec("rebuild", {"index": "a"}),
        ]
    )
    return f"{counts}{await mixed[1].wait()}"


def submit_without_a_loop() -> str:
    pages: dict[str, int] = ingest.sync.submit(path="a.pdf").wait(timeout=30)
    name: str = rebuild.options(priority=3).sync.submit("a").wait()
    (job,) = lw.sync.submit_many([rebuild.job(index="a")])
    direct: str = rebuild(object(), index="a")
    return f"{pages}{name}{job.wait().upper()}{direct}"


async def submit_any(job_type: JobType, job: JobHandle) -> None:
    await job_type.submit(path="a.pdf")
    await job.cancel()
    page = await lw.jobs.list(job_type="ingestion", status="failed", newer_than=3600, limit=10)
    print([found.id for found in page.items])
    async with lw.worker(only_lanes=["docs"], name="one"):
        await lw.ready()


def operate_without_a_loop(job: JobHandle) -> str:
    found = lw.sync.jobs.list(status="failed", limit=10)
    reasons = [reason.code for reason in lw.sync.jobs.explain(job.id).reasons]
    slots: int | None = lw.sync.lanes.set("docs", max_slots=4, by="ann").max_slots
    names = [limit.limit.name.upper() for limit in lw.sync.limits.list()]
    ran = lw.sync.schedules.run("nightly", check=True)
    return f"{[one.id for one in found.items]}{reasons}{slots}{names}{ran}"
