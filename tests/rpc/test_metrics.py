"""Metrics of calls of remote workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from laneway.api.app import make_app
from laneway.observability.counters import PROCESS
from laneway.store.database import Database
from tests.api.conftest import People
from tests.rpc.rpc_harness import RpcHarness, assigned
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

Told = dict[tuple[str, ...], float]


class Scraper:
    """Reads the page of a server, as Prometheus does, and tells what has changed."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._before: Told = {}

    async def read(self) -> Told:
        page = (await self._client.get("/metrics")).text
        values = {
            (sample.name.removeprefix("laneway_grpc_"), *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name.startswith("laneway_grpc_") and not sample.name.endswith("_bucket")
        }
        before, self._before = self._before, values
        changes = {key: value - before.get(key, 0) for key, value in values.items()}
        return {key: value for key, value in changes.items() if value}


@pytest.fixture
async def scraper(database: Database, people: People) -> AsyncIterator[Scraper]:
    app = make_app(database.settings, database)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app),
        base_url="http://test",
        headers=people.new("ops", "operator").headers,
    ) as client:
        scraper = Scraper(client)
        await scraper.read()
        yield scraper
    await app.state.close()


async def test_assignments_and_the_calls_about_them_are_counted(
    rpc: RpcHarness, people: People, factory: JobFactory, scraper: Scraper
) -> None:
    ann = rpc.call(people.new("ann", "remote_worker"))
    for _ in range(3):
        factory.submit("greet")
    jobs = await assigned(await ann.connected(["greet"]), 3)
    await ann.beat(*jobs)
    await ann.finish(*jobs)
    more = await scraper.read()
    assert more.pop(("call_duration_seconds_sum", "Heartbeat")) > 0
    assert more.pop(("call_duration_seconds_sum", "ReportResult")) > 0
    assert more == {
        ("assignments_sent_total",): 3,
        ("open_streams", "StreamJobs"): 1,
        ("calls_total", "Heartbeat", "OK"): 1,
        ("calls_total", "ReportResult", "OK"): 1,
        ("call_duration_seconds_count", "Heartbeat"): 1,
        ("call_duration_seconds_count", "ReportResult"): 1,
    }


async def test_calls_are_counted_by_the_status_they_end_with(
    rpc: RpcHarness, people: People, scraper: Scraper
) -> None:
    ann = rpc.call(people.new("ann", "remote_worker"))
    older = await ann.connected()
    newer = await ann.connected()
    with pytest.raises(grpc.aio.AioRpcError, match="taken over"):
        await older.read()
    for stranger in (rpc.call(None), rpc.call("unknown")):
        with pytest.raises(grpc.aio.AioRpcError, match="token"):
            await stranger.beat()
    ann.worker_id = "no id"
    with pytest.raises(grpc.aio.AioRpcError, match="worker_id"):
        await ann.beat()
    newer.cancel()
    await wait_until(lambda: not PROCESS.call_streams["StreamJobs"])
    more = await scraper.read()
    assert {key[1:]: count for key, count in more.items() if key[0] == "calls_total"} == {
        ("StreamJobs", "ABORTED"): 1,
        ("StreamJobs", "CANCELLED"): 1,
        ("Heartbeat", "UNAUTHENTICATED"): 2,
        ("Heartbeat", "INVALID_ARGUMENT"): 1,
    }
    assert more["call_duration_seconds_count", "Heartbeat"] == 3
    assert ("open_streams", "StreamJobs") not in more


async def test_method_that_is_not_served_makes_no_name(rpc: RpcHarness, scraper: Scraper) -> None:
    call: Any = rpc.channel.unary_unary("/laneway.v1.DispatchService/MadeUp")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert await scraper.read() == {}
