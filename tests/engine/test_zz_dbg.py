import asyncio
from tests.engine.test_superseded import *
async def test_dbg(schedule):
    @schedule.shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        print("start", ctx.attempt, asyncio.get_running_loop().time())
        try:
            if ctx.attempt == 2:
                return await schedule.be_second(ctx)
            await asyncio.Event().wait()
        except BaseException as e:
            print("end", ctx.attempt, repr(e), asyncio.get_running_loop().time())
            raise
    schedule.shop.lane("default", lease_seconds=2)
    submitted = await schedule.supersede()
    for i in range(60):
        await asyncio.sleep(0.1)
        print(schedule.shop.rows("select attempt, lease_until - clock_timestamp() from laneway.lease"))
    print((await submitted.get()).attempts)
