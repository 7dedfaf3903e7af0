"""The network between worker and database is cut or swallows bytes; the worker goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from laneway import Context, Laneway
from laneway.testing.proxy import Proxy
from tests.support.server_address import address, through
from tests.support.worker_harness import QUICK, SOON, WorkerHarness, wait_until


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    async with Proxy(*address(dsn)) as opened:
        yield opened


def application(dsn: str) -> Laneway:
    lw = Laneway(dsn, **{**QUICK, "connect_timeout": 3, "silence_timeout": 0.5})

    @lw.handler("count", max_retries=10, retry=SOON)
    async def count(ctx: Context, n: int) -> int:
        return n

    return lw


@pytest.mark.parametrize("trouble", ["cut", "blackhole", "swallow"])
async def test_worker_continues_when_the_network_is_back(
    harness: WorkerHarness, proxy: Proxy, dsn: str, trouble: str
) -> None:
    lw = application(through(proxy, dsn))
    async with lw.worker():
        first = await harness.lw.submit("count", {"n": 1})
        assert await first.wait(timeout=60) == 1
        for n in range(1 if trouble == "swallow" else 3):
            if trouble == "cut":
                proxy.cut()
            elif trouble == "swallow":
                proxy.swallow()
            else:
                proxy.blackhole()
            job = await harness.lw.submit("count", {"n": n})
            if trouble == "blackhole":
                # Nothing gets through, and nothing is lost.
                assert (await harness.lw.get(job.id)).finished_at is None
                proxy.heal()
            assert await job.wait(timeout=60) == n
        leases = "select count(*) from laneway.lease"
        await wait_until(lambda: harness.conn.execute(leases.encode()).fetchone() == (0,))
    await lw.close()
