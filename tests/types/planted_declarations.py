"""Mistakes in declarations: type checkers report each marked line, and no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from laneway import Analysis, Context, Laneway

lw = Laneway()
Laneway(concurency=3)  # mistake: wrong setting name
Laneway(concurrency="many")  # mistake: wrong setting type


@lw.handler("wrong_option", max_retry=3)  # mistake: wrong option name
async def wrong_option(ctx: Context) -> None: ...


@lw.handler("wrong_type", timeout="soon")  # mistake: wrong option type
async def wrong_type(ctx: Context) -> None: ...


@lw.handler  # mistake: no parentheses
async def no_parentheses(ctx: Context) -> None: ...


@lw.handler()  # mistake: no job type
async def no_job_type(ctx: Context) -> None: ...


@lw.on_start()  # mistake: parentheses
def load(resources: object) -> None: ...


@lw.middleware()  # mistake: parentheses
async def around(ctx: Context, call_next: Callable[[], Awaitable[object]]) -> object:
    return await call_next()


@lw.handler("no_context")  # mistake: no context
async def no_context(path: str) -> None: ...


@lw.handler("right")
async def right(ctx: Context, path: str) -> None: ...


@right.analyze  # mistake: not an Analysis
def plan(path: str) -> str:
    return path


@right.analyze()  # mistake: parentheses
def other_plan(path: str) -> Analysis:
    return Analysis(plan=path)


@right.analyze
def good_plan(path: str) -> Analysis:
    return Analysis(plan=path)


@lw.check("closed", timout=3)  # mistake: wrong option of a check
def closed() -> bool:
    return True


lw.schedule("nightly", "right", crom="0 3 * * *")  # mistake: wrong option of a schedule
lw.schedule("hourly", "right", cron="0 * * * *", missed="never")  # mistake: wrong word
lw.worker(lanes=["docs"])  # mistake: wrong option of a worker


async def submit_batch() -> None:
    await lw.submit_many([("right", {}, {"priorty": 3})])  # mistake: wrong option of one job
    await lw.jobs.list(type="right")  # mistake: wrong condition of a list
    await lw.jobs.list(limit="all")  # mistake: wrong type of a condition
    await right(object(), 7)  # mistake: wrong argument of a call


def operate_without_a_loop() -> None:
    lw.sync.jobs.list(type="right")  # mistake: wrong condition of a list
    lw.sync.lanes.set("docs", max_slot=3)  # mistake: wrong setting of a lane
    lw.sync.limits.list().items()  # mistake: wrong use of a result
    lw.sync.schedules.get(7)  # mistake: wrong type of a name
