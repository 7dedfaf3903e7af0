"""An application for any landed version: works on ten jobs, then prints their results."""

from __future__ import annotations

import asyncio

from laneway import Context, Laneway

lw = Laneway()


@lw.handler("greet")
async def greet(ctx: Context, name: str) -> str:
    return name


async def main() -> None:
    async with lw:
        worker = lw.worker()
        await worker.start()
        jobs = [await lw.submit("greet", {"name": "alone"})]
        jobs += await lw.submit_many([("greet", {"name": f"batch-{i}"}) for i in range(9)])
        print(*[await job.wait(timeout=60) for job in jobs])
        await worker.stop()


if __name__ == "__main__":
    asyncio.run(main())
