"""Mistakes about flows and waits: type checkers report each marked line, and no other."""

from __future__ import annotations

from laneway import Context, Laneway, SyncContext

lw = Laneway()


@lw.handler("page")
async def page(ctx: Context, n: int) -> int:
    return n


@lw.handler("corpus")
async def corpus(ctx: Context, pages: int) -> list[int]:
    await ctx.run_all("pages", [page.job(m=n) for n in range(pages)])  # mistake: wrong argument
    sizes = await ctx.run_all("sized", [page.job(n=1)])
    names: list[str] = sizes  # mistake: wrong result type
    await ctx.run_all("some", [page.job(n=1)], failures="ignore")  # mistake: wrong choice
    await ctx.sleep(3600)  # mistake: missing name
    await ctx.wait_event("reviewed", "folder")  # mistake: key by position
    print(len(list(ctx.results())))  # mistake: needs async for
    async for one in ctx.results():
        print(one.value)  # mistake: wrong attribute
    return [len(names)]


@lw.handler("plain")
def plain(ctx: SyncContext) -> str:
    parts = ctx.run_all("pages", [page.job(n=1)])
    return parts[0]  # mistake: wrong result type


async def make_mistakes() -> None:
    first = await page.submit(n=1)
    await page.options(after=first).submit(n=2)  # mistake: a handle instead of a list
    await lw.submit("page", {"n": 1}, after=[1.5])  # mistake: wrong type in after
    await lw.submit("page", {"n": 1}, after=[first], after_failure="stop")  # mistake: wrong choice
    async with lw.flow("nightly") as flow:
        flow.add(page, m=1)  # mistake: wrong argument name
        flow.add(page, n="one")  # mistake: wrong argument type
        flow.add("page", {"n": 1}, prioritty=5)  # mistake: wrong option name
        flow.add(page.options(after=[first]), n="two")  # mistake: wrong argument type
        added = flow.add(page, n=1)
    text: str = await added.wait()  # mistake: wrong result type
    print(text, await flow.wait("soon"))  # mistake: wrong timeout
