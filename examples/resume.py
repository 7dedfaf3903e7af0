"""A handler that continues where its last attempt stopped.

    python examples/resume.py

`ctx.track` stores a checkpoint. After a failure, a timeout or a crash, the next attempt repeats
only the work after it. It prints:

    attempt 1 failed: connection reset
    attempt 2 completed: started with row 7 of 10
"""

import asyncio

from laneway import Laneway, RetryPolicy, SyncContext

lw = Laneway()


@lw.handler("import_rows", retry=RetryPolicy(base=0.1))
def import_rows(ctx: SyncContext, rows: int) -> str:
    first = 0
    # durable=True stores a checkpoint before each next row. Without it, checkpoints are stored
    # every half second: cheaper, but a crash repeats the rows since then.
    for row in ctx.track(range(1, rows + 1), durable=True):
        first = first or row
        if row == 7 and ctx.attempt == 1:
            raise ConnectionError("connection reset")
    return f"started with row {first} of {rows}"


async def main() -> None:
    async with lw, lw.worker():
        handle = await import_rows.submit(rows=10)
        await handle.wait(timeout=60)
        job = await handle.get()
    for attempt in job.attempts:
        text = attempt.error.message if attempt.error else job.result
        print(f"attempt {attempt.attempt} {attempt.outcome}: {text}")


if __name__ == "__main__":
    asyncio.run(main())
