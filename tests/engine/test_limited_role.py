"""A worker needs no more than the rights of the database role `worker`."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from psycopg.conninfo import make_conninfo

from laneway import Analysis, Context, Laneway
from laneway.store.grants import grants
from tests.engine.workshop import QUICK, Workshop, until


@pytest.fixture
def limited_dsn(shop: Workshop) -> Iterator[str]:
    """The database as a role that has been granted what workers and handlers need."""
    role = f"limited_{uuid4().hex}"
    shop.do(f"create role {role} nologin")
    shop.do(grants(("worker", "client"), role, "nobody"))
    yield make_conninfo(shop.dsn, options=f"-c role={role}")
    shop.do(f"drop owned by {role}")
    shop.do(f"drop role {role}")


async def test_worker_of_a_limited_role_starts_whatever_its_application_declares(
    shop: Workshop, limited_dsn: str
) -> None:
    lw = Laneway(limited_dsn, **QUICK)

    @lw.handler("careful", lane="new_lane", limits=["new_limit"], approval=True)
    async def careful(ctx: Context, page: int) -> int:
        await ctx.progress(1, 1, "half")
        await ctx.save({"page": page})
        return await ctx.step("read", lambda: page)

    @careful.analyze
    async def analyze(page: int) -> Analysis:
        return Analysis(plan="cheap")

    @lw.schedule("nightly", cron="0 3 * * *")
    @lw.handler("plain")
    async def plain(ctx: Context) -> str:
        async with ctx.limit("new_limit"):
            return "done"

    await shop.hire(lw)
    job = await lw.submit("plain")
    assert await job.wait(60) == "done"
    waiting = await lw.submit("careful", {"page": 3})
    await until(lambda: shop.one("select count(*) from laneway.awaiting") == 1)
    await shop.lw.approve(waiting.id, by="ann")
    assert await waiting.wait(60) == 3
    assert shop.rows("select name from laneway.schedules") == [("nightly",)]
    await until(lambda: shop.one("select next_at is not null from laneway.schedule_state"))
    await lw.close()
