"""Correct uses of flows and waits: no type checker reports anything."""

from __future__ import annotations

from laneway import Context, Laneway, SyncContext

lw = Laneway()


@lw.handler("page")
async def page(ctx: Context, n: int) -> int:
    return n


@lw.handler("join")
async def join(ctx: Context) -> int:
    total = 0
    async for part in ctx.results():
        total += int(part.result) if part.is_completed else 0
    return total


@lw.handler("corpus")
async def corpus(ctx: Context, folder: str) -> dict[str, int]:
    sizes: list[int] = await ctx.run_all("pages", [page.job(n=n) for n in range(3)])
    ended = await ctx.run_all("more", [page.job(n=4), ("join", {})], failures="return")
    review = await ctx.wait_event("reviewed", key=folder, timeout=60)
    await ctx.sleep("cool-down", 1.5)
    return {one.status: sum(sizes) + int(review["n"]) for one in ended}


@lw.handler("plain")
def plain(ctx: SyncContext) -> int:
    sizes = ctx.run_all("pages", [page.job(n=1)])
    ctx.sleep("cool-down", 1)
    return sizes[0] + sum(int(part.result) for part in ctx.results())


async def submit() -> int:
    first = await page.submit(n=1)
    second = await lw.submit("page", {"n": 2}, after=[first, first.id], after_failure="hold")
    third: int = await (await page.options(after=[second], after_failure="run").submit(n=3)).wait()
    async with lw.flow("nightly", tags=["nightly"]) as flow:
        pages = [flow.add(page, n=n) for n in range(3)]
        by_name = flow.add("page", {"n": 1}, priority=5, name="extra")
        prepared = flow.add(page.options(priority=5, after=pages), n=4)
        summary = flow.add(join, after=[*pages, by_name, prepared])
    ended = await flow.wait(timeout=60)
    total: int = await summary.wait()
    return total + third + ended.counts.completed


def submit_without_a_loop() -> int:
    with lw.sync.flow("nightly") as flow:
        pages = [flow.add(page.job(n=n), priority=3) for n in range(3)]
        summary = flow.add(join, after=pages)
    flow.wait(60)
    return summary.wait()
