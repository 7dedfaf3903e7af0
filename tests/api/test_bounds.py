"""Laws of the bounds of grants: no interface lets a caller exceed them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx2
import psycopg
import pytest

from laneway.api.app import make_app
from laneway.api.http.group_commit import AT_ONCE
from laneway.config.settings import Settings
from laneway.domain.bounds import USUAL
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

CRON = {"name": "nightly", "job_type": "greet", "cron": "0 3 * * *"}


def job(job_type: str = "greet", **more: Any) -> dict[str, Any]:
    return {"job_type": job_type, "payload": {}, **more}


def rules(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [f"{each['field']}: {each['rule']}" for each in answer.json()["errors"]]


@pytest.mark.parametrize("key", [{}, {"unique_key": "k"}])
async def test_submitter_priority_is_bounded(ask: Ask, people: People, key: Any) -> None:
    ann = people.new("ann", "submitter")
    answer = await ask(ann, "POST", "/jobs", json=job(priority=32767, **key))
    (rule,) = rules(answer)
    assert rule.startswith("priority: at most 100 by your grants, not 32767")
    answer = await ask(ann, "POST", "/jobs", json=job(priority=100, **key))
    assert answer.status_code == 202


async def test_priority_of_each_job_of_a_batch_is_bounded(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_priority=7)
    jobs = [job(priority=7), job(priority=8)]
    (rule,) = rules(await ask(ann, "POST", "/jobs/batch", json={"jobs": jobs}))
    assert rule.startswith("jobs[1].priority: at most 7 by your grants, not 8")


async def test_priority_that_a_worker_published_is_not_the_submitters(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("greet")
    factory.conn.execute("update laneway.job_types set priority = 500 where name = 'greet'")
    ann = people.new("ann", "submitter")
    answer = await ask(ann, "POST", "/jobs", json=job())
    assert (answer.status_code, answer.json()["priority"]) == (202, 500)


async def test_operator_sets_any_priority_within_bounds_of_grant(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    free, bound = people.new("free", "operator"), people.new("bound")
    people.grant(bound.id, "operator", max_priority=50)
    job_id = factory.submit("greet")
    path = f"/admin/workers/jobs/{job_id}/priority"
    assert (await ask(free, "PATCH", path, json={"priority": 32767})).status_code == 200
    assert rules(await ask(bound, "PATCH", path, json={"priority": 51}))[0].startswith("priority")
    assert (await ask(bound, "PATCH", path, json={"priority": 50})).status_code == 200
    order = {"verb": "reprioritize", "all": True, "priority": 51, "dry_run": True}
    assert rules(await ask(bound, "POST", "/jobs/bulk", json=order))[0].startswith("priority")
    assert (await ask(free, "POST", "/jobs/bulk", json=order)).status_code == 200


async def test_priority_of_a_schedule_is_bounded(ask: Ask, people: People) -> None:
    planner = people.new("planner", people.role("planner", "schedules:manage", "schedules:view"))
    path = "/admin/schedules"
    (rule,) = rules(await ask(planner, "POST", path, json={**CRON, "priority": 101}))
    assert rule.startswith("priority: at most 100")
    assert (await ask(planner, "POST", path, json=CRON)).status_code == 201
    (rule,) = rules(await ask(planner, "PATCH", f"{path}/nightly", json={"priority": 101}))
    assert rule.startswith("priority: at most 100")
    answer = await ask(planner, "PATCH", f"{path}/nightly", json={"priority": 100})
    assert answer.status_code == 200


def full(answer: Any, bound: str) -> bool:
    problem = answer.json()
    return (answer.status_code, problem["code"], bound in problem["detail"]) == (
        429, "quota_exceeded", True,
    ) and (problem["bound"], type(problem["limit"])) == (bound, int)  # fmt: skip


async def test_jobs_that_wait_are_bounded_and_counted_again_when_they_start(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann, bob = people.new("ann"), people.new("bob", "submitter")
    people.grant(ann.id, "submitter", max_queued=3)
    assert (await ask(ann, "POST", "/jobs", json=job())).status_code == 202
    batch = {"jobs": [job(), job()]}
    assert (await ask(ann, "POST", "/jobs/batch", json=batch)).status_code == 202
    for again in ({"json": job()}, {"json": job(unique_key="k")}):
        answer = await ask(ann, "POST", "/jobs", **again)
        assert full(answer, "max_queued")
        assert int(answer.headers["Retry-After"]) >= 1
    assert full(await ask(ann, "POST", "/jobs/batch", json=batch), "max_queued")
    assert (await ask(bob, "POST", "/jobs", json=job())).status_code == 202
    counted = factory.conn.execute("select count(*) from laneway.jobs").fetchone()
    assert counted == (4,)
    factory.claim("greet", room=2)
    rested(factory)
    assert (await ask(ann, "POST", "/jobs/batch", json=batch)).status_code == 202
    assert full(await ask(ann, "POST", "/jobs", json=job()), "max_queued")


def rested(factory: JobFactory) -> None:
    """End the pause between two counts of started jobs."""
    factory.conn.execute("update laneway.queue_usage set swept_at = '2020-01-01'")


async def test_duplicate_is_not_counted(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=1)
    for expected in (202, 200, 200):
        answer = await ask(ann, "POST", "/jobs", json=job(unique_key="k"))
        assert answer.status_code == expected


@pytest.mark.parametrize(
    "unique", [{"unique_for": 60}, {"unique_by": ["n"]}, {"unique_key": "k", "unique_for": 60}, {}]
)
async def test_duplicate_by_period_or_arguments_is_answered_at_a_full_quota(
    ask: Ask, people: People, factory: JobFactory, unique: Any
) -> None:
    if not unique:
        factory.publish(unique_for_s=60)
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=1)
    one, two = ({**job(payload={"n": n}), **unique} for n in (1, 2))
    two |= {"unique_key": "other"} if "unique_key" in unique else {}
    first = await ask(ann, "POST", "/jobs", json=one)
    again = await ask(ann, "POST", "/jobs", json=one)
    batch = await ask(ann, "POST", "/jobs/batch", json={"jobs": [one, one]})
    assert [each.status_code for each in (first, again, batch)] == [202, 200, 200]
    for path, body in (("/jobs", two), ("/jobs/batch", {"jobs": [two]})):
        assert (await ask(ann, "POST", path, json=body)).status_code == 429
    stored = factory.conn.execute("select count(*) from laneway.jobs").fetchone()
    assert stored == (1,)


async def test_bytes_that_wait_are_bounded(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued_bytes=1000)
    large = job(payload={"text": "x" * 700})
    assert (await ask(ann, "POST", "/jobs", json=large)).status_code == 202
    assert full(await ask(ann, "POST", "/jobs", json=large), "max_queued_bytes")
    assert full(await ask(ann, "POST", "/jobs/batch", json={"jobs": [large]}), "max_queued_bytes")
    assert (await ask(ann, "POST", "/jobs", json=job())).status_code == 202


async def test_retry_counts_like_a_submit(ask: Ask, people: People, factory: JobFactory) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=1)
    ended = (await ask(ann, "POST", "/jobs", json=job())).json()["id"]
    (claim,) = factory.claim("greet")
    factory.settle(claim, "giveup", error="{}")
    assert (await ask(ann, "POST", "/jobs", json=job())).status_code == 202
    assert full(await ask(ann, "POST", f"/jobs/{ended}/retry"), "max_queued")
    factory.claim("greet")
    rested(factory)
    assert (await ask(ann, "POST", f"/jobs/{ended}/retry")).status_code == 200
    assert full(await ask(ann, "POST", "/jobs", json=job()), "max_queued")


async def test_retry_does_not_bring_back_a_priority_beyond_the_bound(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    factory.publish("ranked")
    factory.conn.execute("update laneway.job_types set priority = 500 where name = 'ranked'")
    explicit, published = (
        factory.failed(job_type, created_by="ann", **more)
        for job_type, more in (("greet", {"priority": 101}), ("ranked", {}))
    )
    (rule,) = rules(await ask(ann, "POST", f"/jobs/{explicit}/retry"))
    assert rule.startswith("priority: at most 100 by your grants, not 101")
    assert (await ask(ann, "POST", f"/jobs/{published}/retry")).status_code == 200


async def test_bulk_retry_counts_like_submits(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=2)
    for _ in range(3):
        claim = factory.running("greet", created_by="ann")
        factory.settle(claim, "giveup", error="{}")
    order = {"verb": "retry", "all": True}
    begun = await ask(ann, "POST", "/jobs/bulk", json=order)
    run = begun.json()
    deadline = time.monotonic() + 60
    while run["state"] == "running" and time.monotonic() < deadline:
        run = (await ask(ann, "GET", begun.headers["Location"])).json()
    assert (run["state"], run["done"]) == ("done", 2)
    assert run["refused"] == {"more would wait than the grants allow": 1}


async def test_number_of_unpublished_job_types_is_bounded(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_types=2)
    factory.publish("known")
    for name in ("a", "b", "a", "known"):
        assert (await ask(ann, "POST", "/jobs", json=job(name))).status_code == 202
    for path, body in (("/jobs", job("c")), ("/jobs/batch", {"jobs": [job("a"), job("c")]})):
        (rule,) = rules(await ask(ann, "POST", path, json=body))
        assert rule.startswith('job_type: no worker has published "c", and your grants allow 2')
    factory.publish("b")
    assert (await ask(ann, "POST", "/jobs", json=job("c"))).status_code == 202


async def test_concurrent_submits_exceed_bound_at_most_by_those_in_progress(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=10)
    tried = [ask(ann, "POST", "/jobs", json=job()) for _ in range(400)]
    codes = [answer.status_code for answer in await asyncio.gather(*tried)]
    assert set(codes) <= {202, 429}
    # Concurrent commits of the server do not see each other's jobs; none of them stores more than
    # the bound.
    assert 10 <= codes.count(202) <= AT_ONCE * 10
    rows = factory.conn.execute("select sum(jobs) from laneway.queue_usage").fetchone()
    assert rows == (codes.count(202),)
    assert full(await ask(ann, "POST", "/jobs", json=job()), "max_queued")


WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and application_name like 'laneway%'
   and wait_event_type = 'Lock'
"""


async def test_only_commits_under_way_exceed_a_bound(
    dsn: str, people: People, factory: JobFactory
) -> None:
    ann, bob = people.new("ann"), people.new("bob", "viewer")
    people.grant(ann.id, "submitter", max_queued=1)
    settings = Settings.load(database_url=dsn)
    database = Database(dsn, settings, role="tests api", size=AT_ONCE + 6)
    app = make_app(settings, database)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)

    def waiting() -> int:
        return int((factory.conn.execute(WAITING).fetchone() or (0,))[0])

    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        with psycopg.connect(dsn) as holder:
            # Each commit has checked the bound, and waits before its job counts.
            holder.execute("lock table laneway.audit in share mode")
            tried = [
                asyncio.create_task(client.post("/jobs", headers=ann.headers, json=job()))
                for _ in range(60)
            ]
            await wait_until(lambda: waiting() >= AT_ONCE)
            assert (await client.get("/jobs", headers=bob.headers)).status_code == 200
            assert waiting() == AT_ONCE
        codes = [answer.status_code for answer in await asyncio.gather(*tried)]
    await app.state.close()
    await database.close()
    assert set(codes) == {202, 429}
    assert codes.count(202) <= AT_ONCE


async def test_widest_of_several_grants_applies(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_priority=5)
    people.grant(ann.id, "submitter", workspace="lab", max_priority=50)
    assert (await ask(ann, "POST", "/jobs", json=job(priority=6))).status_code == 422
    answer = await ask(ann, "POST", "/jobs", json=job(priority=50, workspace="lab"))
    assert answer.status_code == 202


async def test_bounds_are_granted_shown_changed_and_kept(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    root = people.new("root", "platform_admin")
    people.new("ann")
    grant = {"principal": "ann", "role": "submitter", "scope": "own", "max_priority": 5}
    made = await ask(root, "POST", "/admin/grants", json=grant)
    assert (made.status_code, made.json()["max_priority"]) == (201, 5)
    assert (await ask(root, "POST", "/admin/grants", json=grant)).status_code == 409
    changed = await ask(root, "POST", "/admin/grants", json={**grant, "max_priority": 9})
    assert (changed.json()["id"], changed.json()["max_priority"]) == (made.json()["id"], 9)
    (shown,) = (await ask(root, "GET", "/admin/grants?principal=ann")).json()["items"]
    assert (shown["max_priority"], shown["max_queued"]) == (9, None)
    kept = factory.conn.execute(
        "select before ->> 'max_priority', after ->> 'max_priority' from laneway.audit"
        " where action = 'role.granted' order by id"
    ).fetchall()
    assert kept == [(None, "5"), ("5", "9")]
    answer = await ask(root, "POST", "/admin/grants", json={**grant, "max_priority": 40000})
    assert answer.status_code == 422


async def test_callers_cannot_grant_wider_bounds_than_their_own(ask: Ask, people: People) -> None:
    keeper = people.new("keeper", people.role("keeper", "access:manage", "jobs:submit"))
    people.new("ann")
    writes = people.role("writes", "jobs:submit")
    grant = {"principal": "ann", "role": writes, "scope": "own"}
    wide = {**grant, "max_priority": USUAL.max_priority + 1}
    assert (await ask(keeper, "POST", "/admin/grants", json=wide)).status_code == 403
    assert (await ask(keeper, "POST", "/admin/grants", json=grant)).status_code == 201


async def test_omitted_bounds_stay_until_set_to_usual(ask: Ask, people: People) -> None:
    root = people.new("root", "platform_admin")
    people.new("ann")
    grant = {"principal": "ann", "role": "submitter", "scope": "own"}
    first = {**grant, "max_priority": 5, "max_queued": 7}
    assert (await ask(root, "POST", "/admin/grants", json=first)).status_code == 201
    changed = (await ask(root, "POST", "/admin/grants", json={**grant, "max_types": 3})).json()
    assert (changed["max_priority"], changed["max_queued"], changed["max_types"]) == (5, 7, 3)
    assert (await ask(root, "POST", "/admin/grants", json=grant)).status_code == 409
    null = {**grant, "max_priority": None}
    assert (await ask(root, "POST", "/admin/grants", json=null)).status_code == 409
    usual = {**grant, "max_priority": "usual"}
    cleared = (await ask(root, "POST", "/admin/grants", json=usual)).json()
    assert (cleared["max_priority"], cleared["max_queued"]) == (None, 7)


async def test_bounds_that_stay_count_as_granted(ask: Ask, people: People) -> None:
    keeper = people.new("keeper", people.role("keeper", "access:manage", "jobs:submit"))
    writes = people.role("writes", "jobs:submit")
    ann = people.new("ann")
    people.grant(ann.id, writes, scope="own", max_priority=500)
    grant = {"principal": "ann", "role": writes, "scope": "own", "max_queued": 5}
    assert (await ask(keeper, "POST", "/admin/grants", json=grant)).status_code == 403
    narrow = {**grant, "max_priority": "usual"}
    assert (await ask(keeper, "POST", "/admin/grants", json=narrow)).status_code == 201


async def test_last_unbound_platform_admin_gets_no_bounds(ask: Ask, people: People) -> None:
    root = people.new("root", "platform_admin")
    grant = {"principal": "root", "role": "platform_admin", "scope": "all", "max_queued": 1}
    answer = await ask(root, "POST", "/admin/grants", json=grant)
    assert answer.status_code == 409
    assert "last platform_admin" in answer.json()["detail"]
    people.new("other", "platform_admin")
    answer = await ask(root, "POST", "/admin/grants", json=grant)
    assert answer.status_code == 201, answer.text
    # Only the other principal can still remove the bounds.
    change = {"name": "other", "disabled": True}
    assert (await ask(root, "PATCH", "/admin/principals", json=change)).status_code == 409


async def bulk(ask: Ask, who: Any, **order: Any) -> dict[str, Any]:
    begun = await ask(who, "POST", "/jobs/bulk", json={"all": True, **order})
    assert begun.status_code == 202, begun.text
    run: dict[str, Any] = begun.json()
    deadline = time.monotonic() + 60
    while run["state"] == "running" and time.monotonic() < deadline:
        run = (await ask(who, "GET", begun.headers["Location"])).json()
    return run


async def test_bulk_retry_refuses_jobs_that_a_retry_refuses(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_types=1)
    factory.failed("greet", created_by="ann", priority=101)
    factory.failed("unheard", created_by="ann")
    factory.failed("unknown", created_by="ann")
    run = await bulk(ask, ann, verb="retry")
    assert (run["state"], run["done"]) == ("done", 1)
    assert run["refused"] == {
        "its priority is higher than the grants allow": 1,
        "no worker has published its job type, and the grants allow no more of those": 1,
    }


async def test_bulk_verb_on_nothing_in_reach_does_nothing(ask: Ask, people: People) -> None:
    ann = people.new("ann", people.role("blind", "jobs:cancel"))
    for verb in ("cancel", "retry"):
        run = await bulk(ask, ann, verb=verb)
        assert (run["state"], run["done"]) == ("done", 0)


async def test_every_use_of_a_schedule_checks_its_priority(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    root = people.new("root", "operator")
    planner = people.new("planner", people.role("planner", "schedules:manage", "schedules:view"))
    path = "/admin/schedules"
    for priority in (500, 50):
        body = {**CRON, "name": f"at{priority}", "priority": priority}
        assert (await ask(root, "POST", path, json=body)).status_code == 201
    payload = {"payload": {"a": 1}}
    for answer in (
        await ask(planner, "PATCH", f"{path}/at500", json=payload),
        await ask(planner, "POST", f"{path}/at500/run"),
    ):
        (rule,) = rules(answer)
        assert rule.startswith("priority: at most 100 by your grants, not 500")
    stop = await ask(planner, "PATCH", f"{path}/at500", json={"enabled": False})
    assert stop.status_code == 200
    for priority in (500, 50):
        change = {"priority": priority}
        assert (await ask(root, "PATCH", f"{path}/at50", json=change)).status_code == 200
    (rule,) = rules(await ask(planner, "POST", f"{path}/at50/rollback", json={}))
    assert rule.startswith("priority: at most 100 by your grants, not 500")
    shown = (await ask(planner, "GET", f"{path}/at50")).json()
    assert shown["priority"] == 50


async def test_run_of_a_schedule_counts_like_a_submit(ask: Ask, people: People) -> None:
    planner = people.new("planner")
    people.grant(planner.id, people.role("plans", "schedules:manage"), max_queued=1)
    assert (await ask(planner, "POST", "/admin/schedules", json=CRON)).status_code == 201
    path = "/admin/schedules/nightly/run"
    assert (await ask(planner, "POST", path)).status_code == 200
    assert full(await ask(planner, "POST", path), "max_queued")


@pytest.mark.parametrize(
    "path, body",
    [
        ("/jobs", job()),
        ("/jobs", job(unique_key="k")),
        ("/jobs/batch", {"jobs": [job(), job()]}),
    ],
)
async def test_refused_submit_writes_no_job(
    ask: Ask, people: People, factory: JobFactory, path: str, body: Any
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=0)
    number = "select last_value, is_called from laneway.jobs_seq_seq"
    before = factory.conn.execute(number).fetchone()
    for _ in range(2):
        assert full(await ask(ann, "POST", path, json=body), "max_queued")
    assert factory.conn.execute(number).fetchone() == before


@pytest.mark.parametrize("bounds", [{"max_queued_bytes": 1000}, {"max_queued": 1}])
async def test_unique_key_twice_in_a_batch_counts_once(
    ask: Ask, people: People, bounds: Any
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", **bounds)
    one = job(payload={"text": "x" * 600}, unique_key="k")
    answer = await ask(ann, "POST", "/jobs/batch", json={"jobs": [one, one]})
    assert answer.status_code == 202, answer.text
    assert [each["duplicate"] for each in answer.json()["items"]] == [False, True]


@pytest.mark.parametrize("body", ['{{"jobs": [{}]}}', "{}"])
async def test_large_payload_counts_as_it_is_stored(ask: Ask, people: People, body: str) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued_bytes=1000)
    # PostgreSQL keeps the last value of a repeated key.
    payload = f'{{"a": "{"x" * 70_000}", "a": 1}}'
    one = f'{{"job_type": "greet", "unique_key": "k", "payload": {payload}}}'
    path = "/jobs/batch" if "jobs" in body else "/jobs"
    sent = {"Content-Type": "application/json"}
    answer = await ask(ann, "POST", path, content=body.format(one), headers=sent)
    assert answer.status_code == 202, answer.text


async def test_batch_of_too_many_bytes_leaves_no_job(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued_bytes=1000)
    held = job(payload={"text": "y" * 500}, unique_key="k")
    assert (await ask(ann, "POST", "/jobs", json=held)).status_code == 202
    jobs = [job(payload={"text": "x" * 300}), job(payload={"text": "x" * 300})]
    batch = {"jobs": [held, *jobs]}
    for _ in range(2):
        assert full(await ask(ann, "POST", "/jobs/batch", json=batch), "max_queued_bytes")
    assert factory.conn.execute("select count(*) from laneway.jobs").fetchone() == (1,)
    # A duplicate job uses no bytes.
    answer = await ask(ann, "POST", "/jobs/batch", json={"jobs": [held, jobs[0]]})
    assert answer.status_code == 202
