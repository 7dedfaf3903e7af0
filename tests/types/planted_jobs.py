"""Eight mistakes about jobs: type checkers report each marked line, and no other."""

from __future__ import annotations

from laneway import Context, Laneway

lw = Laneway()


@lw.handler("ingestion", max_retries=3)
async def ingest(ctx: Context, path: str, pages: int = 10) -> dict[str, int]:
    return {path: pages}


async def make_mistakes() -> None:
    await ingest.submit(pth="a.pdf")  # mistake: wrong argument name
    await lw.submit_many([ingest.job()])  # mistake: missing argument
    ingest.sync.submit(path=7)  # mistake: wrong argument type
    job = await ingest.submit(path="a.pdf")
    pages: int = await job.wait()  # mistake: wrong result type
    name: str = ingest.sync.submit(path="a.pdf").wait()  # mistake: wrong result type
    await ingest.options(priorty=pages).submit(path=name)  # mistake: wrong option name
    await ingest.options(tags=5).submit(path=name)  # mistake: wrong option type
    await lw.submit("ingestion", {"path": name}, max_retry=3)  # mistake: wrong option of submit
