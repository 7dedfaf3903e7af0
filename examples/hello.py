"""Submit a job and run it, all in one program.

    python examples/hello.py

Without LANEWAY_DATABASE_URL it uses embedded PostgreSQL. It prints:

    hello Ada
"""

import asyncio

from laneway import Context, Laneway

lw = Laneway()


@lw.handler("greet")
async def greet(ctx: Context, name: str) -> str:
    return f"hello {name}"


async def main() -> None:
    async with lw, lw.worker():
        job = await greet.submit(name="Ada")
        print(await job.wait(timeout=60))


if __name__ == "__main__":
    asyncio.run(main())
