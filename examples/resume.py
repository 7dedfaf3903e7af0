"""A handler that goes on where its last attempt got to.

    python examples/resume.py

`ctx.track` notes how far it is; a failure, a timeout or a crash of the whole machine costs no more
than what came after the last note. It prints:

    attempt 1 failed: the other side hung up
    attempt 2 completed: began with row 7 of 10
"""

import asyncio

from laneway import Laneway, RetryPolicy, SyncContext

lw = Laneway()


@lw.handler("import_rows", retry=RetryPolicy(base=0.1))
def import_rows(ctx: SyncContext, rows: int) -> str:
    first = 0
    # durable=True: each row is noted before the next begins. Without it, notes are gathered for
    # half a second, which is cheaper and repeats those rows after a crash.
    for row in ctx.track(range(1, rows + 1), durable=True):
        first = first or row
        if row == 7 and ctx.attempt == 1:
            raise ConnectionError("the other side hung up")
    return f"began with row {first} of {rows}"


async def main() -> None:
    async with lw:
        worker = lw.worker()
        await worker.start()
        try:
            handle = await import_rows.submit(rows=10)
            await handle.wait(timeout=60)
            job = await handle.get()
        finally:
            await worker.stop()
    for attempt in job.attempts:
        said = attempt.error.message if attempt.error else job.result
        print(f"attempt {attempt.attempt} {attempt.outcome}: {said}")


if __name__ == "__main__":
    asyncio.run(main())
