"""Every route through the client, on a real database: results equal those of other interfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from fastapi import FastAPI

from laneway.control import approval, history, job_types, lanes, limits, schedules, stats, workers
from laneway.control import audit as audits
from laneway.control import explain as explaining
from laneway.control import jobs as verbs
from laneway.domain.approval import Analysis, Approval
from laneway.domain.audit import AuditFilter
from laneway.domain.bulk import BulkRequest, BulkVerb
from laneway.domain.filter import JobFilter
from laneway.domain.limit import Limit
from laneway.domain.states import Status
from laneway.errors import Forbidden, InvalidInput, NotFound, Refused, Unauthenticated
from laneway.http import AsyncClient
from laneway.store.database import Database
from tests.api.conftest import People
from tests.http.scripted_server import ScriptedServer, answer
from tests.support.job_factory import JobFactory


async def test_submitted_job_is_the_job_that_is_read(
    client: AsyncClient, database: Database
) -> None:
    made = await client.submit(
        "greet", {"name": "Ann"}, priority=7, delay=60, tags=["a"], unique_key="k", max_retries=1
    )
    again = await client.submit("greet", {"name": "Ann"}, unique_key="k")

    assert (made.status, made.priority, made.tags) == (Status.APPROVED, 7, ("a",))
    assert (again.id, again.duplicate, made.duplicate) == (made.id, True, False)
    assert made.created_by == "admin"
    assert await client.review_job(made.id) == await approval.review(database, made.id)
    assert await client.get_job(str(made.id)) == (await approval.review(database, made.id)).job


async def test_many_jobs_are_submitted_together(client: AsyncClient) -> None:
    made = await client.submit_many([("greet", {}), {"job_type": "greet", "unique_key": "k"}])

    assert [(each.job_type, each.duplicate) for each in made] == [("greet", False)] * 2
    assert {job.id async for job in client.list_jobs()} == {each.id for each in made}


async def test_list_is_read_page_by_page(
    client: AsyncClient, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.http.pages.PAGE", 2)
    ids = [factory.submit() for _ in range(5)]
    factory.submit("other")

    assert [job.id async for job in client.list_jobs(job_type="greet")] == ids[::-1]
    first = await client.list_jobs(JobFilter(job_type="greet")).page(limit=3)
    rest = await client.list_jobs(job_type="greet").page(limit=3, cursor=first.next_cursor)
    assert [job.id for job in first.items + rest.items] == ids[::-1]
    assert rest.next_cursor is None


async def test_verbs_on_a_job_answer_it_as_it_is_then(
    client: AsyncClient, factory: JobFactory, database: Database
) -> None:
    waiting, running, failed = factory.submit(), factory.running("slow"), factory.failed("bad")

    assert (await client.cancel_job(waiting, "why")).status is Status.CANCELLED
    assert (await client.retry_job(waiting)).status is Status.APPROVED
    assert (await client.reprioritize_job(waiting, 9)).priority == 9
    delayed = await client.submit("greet", delay=3600)
    assert (await client.run_job_now(delayed.id)).run_at < delayed.run_at  # type: ignore[operator]
    assert await client.explain_job(waiting) == await explaining.explain(database, waiting)
    assert (await client.delete_job(waiting)).status is Status.CANCELLED  # type: ignore[union-attr]
    assert await client.delete_job(waiting) is None
    assert (await client.cancel_running_job(running.job_id)).cancel_requested_at is not None
    found = await client.get_job(failed)
    assert found.attempts[0].error is not None
    assert found.attempts[0].error.traceback == "here"
    with pytest.raises(Refused, match="only running"):
        await client.cancel_running_job(failed)


async def test_job_is_approved_by_its_seal_or_rejected(
    client: AsyncClient, factory: JobFactory
) -> None:
    factory.publish("costly", has_analysis=True, approval=Approval())
    first, second = (factory.analyzed(Analysis(cost=3, currency="EUR")) for _ in range(2))
    seen = await client.review_job(first)

    with pytest.raises(Refused, match="has changed since it was shown"):
        await client.approve_job(first, seal="other")
    assert (await client.approve_job(first, "fine", seen.seal)).status is Status.APPROVED
    assert (await client.reject_job(second, "dear")).status is Status.CANCELLED
    assert [one.comment for one in (await client.review_job(second)).decisions] == ["dear"]


async def test_bulk_verb_is_counted_then_followed(client: AsyncClient, factory: JobFactory) -> None:
    ids = {factory.submit() for _ in range(3)}
    order = BulkRequest(verb=BulkVerb.CANCEL, wanted=JobFilter(job_type="greet"))

    found = await client.preview_bulk(order)
    run = await client.start_bulk(order, upto=found.upto)
    while not run.is_over:
        run = await client.get_bulk(run.id)

    assert (found.matched, set(found.sample)) == (3, ids)
    assert (run.state, run.done, run.refused) == ("done", 3, {})


async def test_lanes_limits_and_pause_equal_those_of_control(
    client: AsyncClient, factory: JobFactory, database: Database
) -> None:
    factory.register()
    factory.running()
    factory.submit()
    made = await client.create_lane("fast", {"max_slots": 3})
    tuned = await client.tune_lane("fast", {"enabled": False, "max_slots": None})
    limit = await client.put_limit(Limit("gpu", 2, 10, 60.0, "host"))
    again = await client.put_limit(Limit("gpu", 3))

    assert (made.max_slots, tuned.max_slots, tuned.enabled) == (3, None, False)
    assert (limit.is_new, again.is_new, again.limit.rate_count) == (True, False, None)
    assert (await client.get_limit("gpu")).limit == again.limit
    assert [each async for each in client.list_limits()] == await limits.inspect(database)
    changed = [each async for each in client.list_lane_changes("fast")]
    assert changed == await history.history(database, "lane", "fast")
    assert (await client.roll_back_lane("fast")).verb == "changed"  # type: ignore[union-attr]
    assert (await client.pause_claims()).paused_by == "admin"
    seen, known = await client.read_status(), await workers.overview(database)
    assert (seen.gate, seen.workers) == (known.gate, known.live)
    listed = [each.lane for each in seen.lanes]
    assert listed == [each.lane async for each in client.list_lanes()]
    assert listed == [each.lane for each in await lanes.inspect(database)]
    assert replace(seen.active[0], held_s=0) == replace(known.active[0], held_s=0)
    assert not (await client.resume_claims()).paused
    await client.delete_limit("gpu")
    with pytest.raises(NotFound, match="no limit gpu"):
        await client.get_limit("gpu")


async def test_one_worker_is_drained_and_resumed(
    client: AsyncClient, factory: JobFactory, database: Database
) -> None:
    factory.register()
    drained = await client.drain_worker(factory.worker_id)
    assert drained == await workers.get(database, factory.worker_id)
    assert (drained.drain_requested_by, drained.is_live) == ("admin", True)
    resumed = await client.resume_worker(str(factory.worker_id))
    assert resumed.drain_requested_at is None
    with pytest.raises(NotFound, match="no worker"):
        await client.drain_worker(uuid4())


async def test_lanes_are_frozen_and_thawed(client: AsyncClient, factory: JobFactory) -> None:
    claim = factory.running()
    frozen = await client.freeze_lanes(["default"])

    assert not frozen.is_quiet
    assert [job.id for lane in frozen.lanes for job in lane.jobs] == [claim.job_id]
    assert [each.lane for each in await client.thaw_lanes()] == ["default"]


async def test_charts_are_typed(client: AsyncClient, factory: JobFactory) -> None:
    factory.completed()

    (point,) = (await client.read_stats(window_s=600, lane="default")).points
    assert (point.lane, point.job_type, point.completed) == ("default", "greet", 1)


async def test_stats_equal_those_of_control(
    client: AsyncClient, factory: JobFactory, database: Database
) -> None:
    factory.publish("greet", '{"type": "object"}')
    factory.failed()
    factory.submit()

    counted = await client.count_jobs(JobFilter(job_type="greet"), lane="default")
    assert counted == await verbs.counts(database, JobFilter(job_type="greet"))
    assert (await client.read_failures()) == await stats.failures(database)
    factory.publish("greet", '{"type": "object"}', application="a/b c?")
    (publisher,) = (await job_types.publishers(database)).items
    assert [each async for each in client.list_publishers(job_type="greet")] == [publisher]
    assert [each async for each in client.list_publishers(stale_only=True)] == []
    assert await client.forget_publisher("a/b c?", job_type="greet") == ["greet"]
    known = [each async for each in client.list_job_types(lane="default")]
    assert known == (await job_types.listing(database)).items
    (load,) = (await client.get_lane("default")).by_priority or ()
    assert (load.job_type, load.priority, load.depth) == ("greet", 0, 1)
    page = await client.read_database()
    assert (page.connection, page.listener, page.listens) == ("direct", "off", True)
    assert page.storage.tables[0].bytes > 0
    with pytest.raises(InvalidInput, match="q"):
        await client.count_jobs(JobFilter(q="x"))


async def test_schedules_equal_those_of_control(client: AsyncClient, database: Database) -> None:
    made = await client.create_schedule("nightly", {"job_type": "greet", "cron": "0 3 * * *"})
    ran = await client.run_schedule("nightly")
    changed = await client.change_schedule("nightly", {"enabled": False})

    assert (made.enabled, changed.enabled, ran.answer) == (True, False, "submitted")
    assert await client.get_schedule("nightly") == await schedules.get(database, "nightly")
    assert [each async for each in client.list_schedules()] == await schedules.listing(database)
    slots = [each async for each in client.list_slots("nightly")]
    assert slots == await schedules.slots(database, "nightly")
    assert len([each async for each in client.list_schedule_changes("nightly")]) == 2
    assert (await client.roll_back_schedule("nightly")) is not None
    await client.delete_schedule("nightly")
    with pytest.raises(NotFound):
        await client.get_schedule("nightly")


async def test_access_is_given_and_taken(client: AsyncClient, app: FastAPI) -> None:
    ann = await client.create_principal("ann", "service")
    role = await client.create_role("reader", ["jobs:read"])
    grant = await client.grant_role("ann", "reader", "all", lanes=["default"])
    made = await client.create_token("ann", "laptop", expires_in=60, job_types=["greet"])

    assert ann.id in {each.id async for each in client.list_principals()}
    assert role.name in {each.name async for each in client.list_roles()}
    assert [each async for each in client.list_grants(principal="ann")] == [grant]
    assert made.token in [each async for each in client.list_tokens(principal="ann")]
    assert made.token.job_types == ("greet",)
    transport = httpx2.ASGITransport(app)
    async with AsyncClient("http://test", made.secret, transport=transport) as hers:
        me = await hers.get_me()
        assert (me.name, me.allows("jobs:read"), me.allows("jobs:submit")) == ("ann", True, False)
        assert me.job_types == ["greet"]
        with pytest.raises(Forbidden, match="jobs:submit"):
            await hers.submit("greet")
    assert (await client.switch_principal("ann", disabled=True)).is_disabled
    assert (await client.revoke_token(made.token.id)).revoked_by == "admin"
    await client.revoke_grant(grant.id)
    assert (await client.change_role("reader", ["audit:read"])).permissions == ("audit:read",)
    await client.delete_role("reader")


async def test_audit_records_interface(
    app: FastAPI, people: People, database: Database, client: AsyncClient
) -> None:
    admin = people.new("other", "platform_admin")
    doors: tuple[Any, ...] = ("cli", "mcp", "python")
    for door in doors:
        transport = httpx2.ASGITransport(app)
        async with AsyncClient("http://test", admin.token, transport=transport, door=door) as one:
            await one.pause_claims()
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as plain:
        for door in ("grpc", "http", "else"):
            headers = {**admin.headers, "Laneway-Door": door}
            assert (await plain.post("/admin/workers/pause", headers=headers)).status_code == 200

    audit_entries = [each async for each in client.list_audit_entries(AuditFilter(actor="other"))]
    assert [each.door for each in audit_entries[::-1]] == ["cli", "mcp", "python", *["http"] * 3]
    assert audit_entries == (await audits.listing(database, AuditFilter(actor="other"))).items
    later = AuditFilter(since=datetime(2200, 1, 1, tzinfo=UTC))
    assert [each async for each in client.list_audit_entries(later)] == []


async def test_health_needs_no_token(app: FastAPI) -> None:
    async with AsyncClient("http://test", transport=httpx2.ASGITransport(app)) as nobody:
        assert (await nobody.get_health()).status == "ok"
        assert (await nobody.get_readiness()).status
        with pytest.raises(Unauthenticated):
            await nobody.get_me()


@pytest.mark.parametrize(
    "asked, error, expected",
    [
        (lambda c: c.get_job(uuid4()), NotFound, "no job"),
        (lambda c: c.get_job("x"), InvalidInput, "id"),
        (lambda c: c.submit("greet", priority=10**6), InvalidInput, "priority"),
        (lambda c: c.submit("greet", workspace=""), InvalidInput, "workspace"),
        (lambda c: c.submit("greet", float("nan")), InvalidInput, "body"),
        (lambda c: c.submit("greet", "\ud800"), InvalidInput, "body"),
        (lambda c: c.submit("greet", "\0"), InvalidInput, "payload"),
        (lambda c: c.tune_lane("default", {"max_slots": -1}), InvalidInput, "max_slots"),
        (lambda c: c.tune_lane("..", {}), InvalidInput, "name"),
        (lambda c: c.list_jobs(lane="Bad!").page(), InvalidInput, "lane"),
        (lambda c: c.delete_limit("nope"), NotFound, "no limit"),
    ],
)
async def test_refusal_raises_same_error_as_other_interfaces(
    client: AsyncClient, asked: Callable[[AsyncClient], Any], error: type[Exception], expected: str
) -> None:
    with pytest.raises(error) as caught:
        await asked(client)
    if isinstance(caught.value, InvalidInput):
        assert caught.value.field == expected
        assert caught.value.rule
    else:
        assert expected in str(caught.value)


async def test_server_under_a_prefix_is_asked_there(app: FastAPI, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    outer = FastAPI()
    outer.mount("/tools/laneway", app)
    for url in ("http://test/tools/laneway", "http://test/tools/laneway/"):
        transport = httpx2.ASGITransport(outer)
        async with AsyncClient(url, admin.token, transport=transport) as client:
            made = await client.submit("greet")
            assert (await client.get_job(made.id)).id == made.id


async def test_failures_of_an_earlier_server_are_read() -> None:
    failure = {
        "lane": "default", "job_type": "greet", "error_type": "LookupError", "failures": 2,
        "last_at": "2026-05-04T09:30:01Z", "example": str(uuid4()),
    }  # fmt: skip
    sent = {"window_s": 3600, "is_capped": False, "items": [failure]}
    script = ScriptedServer(answer(200, sent))
    async with AsyncClient("http://localhost", "lw_x", transport=script) as client:
        found = await client.read_failures()
    assert (found.items[0].failures, found.items[0].trend, found.bucket_s) == (2, (), 0)
