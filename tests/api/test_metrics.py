"""GET /metrics: the cluster as the database has it, and this process."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from laneway.api.routes.health import ReadinessCheck
from laneway.api.routes.metrics import ClusterFigures
from laneway.config.settings import Settings
from laneway.control import cluster
from laneway.domain.approval import Approval
from laneway.observability import metrics
from laneway.observability.counters import MAX_LANES, OTHER, Counters
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.engine.spans import Spans, spans
from tests.support.job_factory import JobFactory

__all__ = ["spans"]

Figures = dict[tuple[str, tuple[str, ...]], float]


def figures(page: str) -> Figures:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


async def test_metrics_page_has_cluster_and_process_metrics(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ops = people.new("ops", "operator")
    factory.register(("ingestion",))
    for _ in range(3):
        factory.submit("ingestion")
    factory.claim("ingestion")
    factory.conn.execute("update laneway.worker_lanes set enabled = false where name = 'system'")
    answer = await ask(ops, "GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    scraped = figures(answer.text)
    assert scraped["laneway_database_up", ()] == 1
    assert scraped["laneway_schema_current", ()] == 1
    assert scraped["laneway_queue_depth", ("interactive",)] == 2
    assert scraped["laneway_queue_depth_is_capped", ("interactive",)] == 0
    assert scraped["laneway_oldest_wait_seconds", ("interactive",)] > 0
    assert scraped["laneway_oldest_wait_seconds", ("maintenance",)] == 0
    assert scraped["laneway_slots_used", ("interactive",)] == 1
    assert scraped["laneway_slots_max", ("interactive",)] == 2
    assert scraped["laneway_slots_max", ("default",)] == float("inf")
    assert scraped["laneway_lane_enabled", ("system",)] == 0
    assert scraped["laneway_workers", ("live",)] == 1
    assert scraped["laneway_leader_present", ()] == 0
    assert scraped["laneway_leases_lapsed", ()] == 0
    assert scraped["laneway_pool_size", ("tests api",)] >= 1
    names = {family.name for family in metrics.FAMILIES}
    shown = {line.split()[2] for line in answer.text.splitlines() if line.startswith("# TYPE")}
    assert names <= shown


async def test_server_that_only_leads_is_not_a_live_worker(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ops = people.new("ops", "operator")
    factory.register()
    factory.conn.execute("update laneway.workers set concurrency = 0")
    scraped = figures((await ask(ops, "GET", "/metrics")).text)
    assert scraped["laneway_workers", ("live",)] == 0


async def test_what_waits_for_a_person_is_counted(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ops = people.new("ops", "operator")
    factory.failed("ingestion")
    factory.failed("ingestion", workspace="other")
    factory.publish("costly", approval=Approval())
    factory.submit("costly")
    factory.conn.execute(
        "insert into laneway.schedules (name, job_type, cron, enabled, error)"
        " values ('nightly', 'greet', '0 0 * * *', false, 'no such zone')"
    )
    scraped = figures((await ask(ops, "GET", "/metrics")).text)
    assert scraped["laneway_jobs_failed", ()] == 2
    assert scraped["laneway_jobs_awaiting_approval", ()] == 1
    assert scraped["laneway_schedules_stopped", ()] == 1


async def test_waiting_jobs_are_counted_by_reason(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ops = people.new("ops", "operator")
    parent = factory.submit()
    factory.submit(after=[parent])
    factory.conn.execute(
        "insert into laneway.waiting (seq, job_type, rank, attempt, reason, name, since)"
        " select -n, 'greet', 0, 1, 'event', 'reviewed', clock_timestamp() - n * interval '1 hour'"
        " from generate_series(1, 3) n"
    )
    factory.conn.execute(
        "insert into laneway.flows (id, name, is_open)"
        " select gen_random_uuid(), 'f', n = 1 from generate_series(1, 2) n"
    )
    scraped = figures((await ask(ops, "GET", "/metrics")).text)
    counted = {
        reason: scraped["laneway_jobs_waiting", (reason,)]
        for reason in ("jobs", "sub_jobs", "event", "sleep")
    }
    assert counted == {"jobs": 1, "sub_jobs": 0, "event": 3, "sleep": 0}
    assert scraped["laneway_jobs_waiting_oldest_seconds", ("event",)] > 3 * 3600 - 60
    assert scraped["laneway_jobs_waiting_oldest_seconds", ("sleep",)] == 0
    assert scraped["laneway_flows_open", ()] == 1


async def test_requests_are_counted_by_the_template_of_their_route(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ops = people.new("ops", "operator")
    before = figures((await ask(ops, "GET", "/metrics")).text)
    job_id = factory.submit()
    for path in (f"/jobs/{job_id}", f"/jobs/{job_id}", "/no/such/place"):
        await ask(ops, "GET", path)
    page = (await ask(ops, "GET", "/metrics")).text
    after = figures(page)

    def more(*labels: str) -> float:
        key = "laneway_http_requests_total", labels
        return after[key] - before.get(key, 0)

    assert more("GET", "/jobs/{job_id}", "2xx") == 2
    assert more("GET", "none", "4xx") == 1
    assert str(job_id) not in page
    assert "such" not in page


async def test_many_scrapers_cost_as_much_as_one(
    ask: Ask, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    real = cluster.survey

    async def survey(db: Database) -> cluster.ClusterState:
        nonlocal asked
        asked += 1
        return await real(db)

    monkeypatch.setattr("laneway.api.routes.metrics.survey", survey)
    # A busy machine may take longer than two seconds for them.
    monkeypatch.setattr("laneway.api.routes.metrics.FRESH_S", 600.0)
    ops = people.new("ops", "operator")
    for _ in range(5):
        assert (await ask(ops, "GET", "/metrics")).status_code == 200
    assert asked == 1


async def test_lanes_beyond_the_bound_are_one(
    database: Database, conn: psycopg.Connection[Any]
) -> None:
    conn.execute(
        "insert into laneway.worker_lanes (name, max_slots)"
        " select 'x' || i, 1 from generate_series(1, %s) i",
        [MAX_LANES * 2],
    )
    found = ClusterFigures(database, ReadinessCheck(database), Counters())
    scraped = dict(await found.read())
    for family in (metrics.DEPTH, metrics.SLOTS_MAX, metrics.OLDEST_WAIT):
        assert len(scraped[family]) == MAX_LANES + 1
    rows = conn.execute("select count(*) from laneway.worker_lanes").fetchone()
    assert scraped[metrics.SLOTS_MAX][OTHER,] == (rows or [0])[0] - MAX_LANES


async def test_unavailable_or_outdated_database_is_reported(
    empty_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = "postgresql://someone:hidden@127.0.0.1:1/none"
    for dsn, expected in (
        (nowhere, {metrics.DATABASE_UP: 0}),
        (empty_dsn, {metrics.DATABASE_UP: 0, metrics.SCHEMA_CURRENT: 0}),
    ):
        database = Database(dsn, Settings.load(database_url=dsn), role="tests api")
        found = ClusterFigures(database, ReadinessCheck(database), Counters())
        assert {family: values[()] for family, values in await found.read()} == expected
        await database.close()
    assert "hidden" not in caplog.text


async def test_depth_is_not_counted_beyond_its_bound(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ops = people.new("ops", "operator")
    factory.conn.execute(
        "insert into laneway.ready (seq, job_type, rank)"
        " select i, 'many', 0 from generate_series(1, 10002) i"
    )
    scraped = figures((await ask(ops, "GET", "/metrics")).text)
    assert scraped["laneway_queue_depth", ("default",)] == 10_000
    assert scraped["laneway_queue_depth_is_capped", ("default",)] == 1


async def test_readiness_shows_listener(ask: Ask, app: FastAPI) -> None:
    own = app.state.hub
    ready = {"status": "ok", "database": "reached", "schema": "current"}
    for state, listener in ((0, False), "off"), ((1, False), "polling"), ((1, True), "listening"):
        streams, is_listening = state
        app.state.hub = SimpleNamespace(open_streams=streams, is_listening=is_listening)
        assert (await ask(None, "GET", "/readyz")).json() == {**ready, "listener": listener}
    app.state.hub = own


@pytest.mark.parametrize("path", ["/jobs", "/jobs/batch"])
async def test_request_continues_the_trace_of_its_caller(
    ask: Ask, people: People, factory: JobFactory, spans: Spans, path: str
) -> None:
    ann = people.new("ann", "submitter")
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    job = {"job_type": "greet"}
    body = {"jobs": [job]} if path.endswith("batch") else job
    headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    answer = await ask(ann, "POST", path, json=body, headers=headers)
    assert answer.status_code == 202
    sent = spans.one("send greet").get_span_context()
    assert sent is not None
    assert f"{sent.trace_id:032x}" == trace_id
    kept = factory.conn.execute("select traceparent from laneway.jobs").fetchone()
    assert kept is not None
    assert kept[0].startswith(f"00-{trace_id}-{sent.span_id:016x}-")


async def test_health_checks_are_not_logged(
    ask: Ask, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    ops = people.new("ops", "operator")
    caplog.set_level(logging.INFO, "laneway.api")
    for path in ("/healthz", "/readyz", "/metrics", "/me"):
        await ask(ops, "GET", path)
    assert [line.getMessage().split()[1] for line in caplog.records] == ["/me"]


async def test_tokens_in_use_that_expire_soon_are_counted(ask: Ask, people: People) -> None:
    ops = people.new("ops", "operator")
    people.expire(ops.token, days=3)
    unused, gone, later = (people.token(ops.id) for _ in range(3))
    people.expire(unused, days=3)
    for token, days in ((gone, -1), (later, 30)):
        assert (await ask(replace(ops, token=token), "GET", "/me")).status_code == 200
        people.expire(token, days=days)
    scraped = figures((await ask(ops, "GET", "/metrics")).text)
    assert scraped["laneway_tokens_expiring", ()] == 1
