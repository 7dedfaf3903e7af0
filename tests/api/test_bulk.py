"""A verb on many jobs over HTTP: counted first, run in the background, within the scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from fastapi import FastAPI

from laneway.control import access
from laneway.store.database import Database
from tests.api.conftest import Ask, People, Principal
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

GREET = {"job_type": "greet"}


async def ended(ask: Ask, app: FastAPI, who: Principal, begun: httpx2.Response) -> Any:
    """Wait until the run has ended."""
    assert begun.status_code == 202, begun.text

    async def at_its_end() -> Any:
        run = (await ask(who, "GET", begun.headers["location"])).json()
        return None if run["state"] == "running" else run

    return await wait_until(at_its_end)


async def test_run_takes_the_jobs_in_reach_and_no_other(
    ask: Ask,
    app: FastAPI,
    people: People,
    factory: JobFactory,
    audit_entries: Callable[[], list[Any]],
) -> None:
    ann = people.new("ann", "submitter")
    mine = [factory.submit(created_by="ann") for _ in range(3)]
    theirs = factory.submit(created_by="bob")
    order = {"verb": "cancel", "filter": GREET, "reason": "late"}
    counted = await ask(ann, "POST", "/jobs/bulk", json={**order, "dry_run": True})
    assert counted.status_code == 200
    assert (counted.json()["matched"], counted.json()["is_more"]) == (3, False)
    assert set(counted.json()["sample"]) == {str(job_id) for job_id in mine}
    run = await ended(ask, app, ann, await ask(ann, "POST", "/jobs/bulk", json=order))
    assert (run["state"], run["done"], run["refused"]) == ("done", 3, {})
    ben = people.new("ben", "operator")
    assert (await ask(ben, "GET", f"/jobs/{theirs}")).json()["status"] == "approved"
    assert {act[0] for act in audit_entries()} == {"ann"}
    assert len(audit_entries()) == 1


async def test_bulk_ignores_unreadable_jobs(ask: Ask, people: People, factory: JobFactory) -> None:
    """As for a single job: otherwise a filter would reveal payloads of others."""
    people.role("stopper", "jobs:cancel")
    stops = people.new("stops", "stopper")
    owns = people.new("owns", "stopper")
    people.grant(owns.id, "submitter")
    ours = people.new("ours", "stopper", lanes=["default"])
    people.grant(ours.id, "viewer", workspace="ours")
    factory.submit(created_by="owns")
    factory.submit(created_by="somebody", workspace="ours")
    factory.submit("restore", created_by="somebody", workspace="ours")
    order = {"verb": "cancel", "all": True, "dry_run": True}
    for who, matched in ((stops, 0), (owns, 1), (ours, 1)):
        answer = await ask(who, "POST", "/jobs/bulk", json=order)
        assert (answer.status_code, answer.json()["matched"]) == (200, matched), who.name
    operator = people.new("operator", "operator")
    assert (await ask(operator, "POST", "/jobs/bulk", json=order)).json()["matched"] == 3


async def test_concurrent_bulk_runs_per_principal_are_bounded(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.control.bulk_runs.MAX_RUNS", 2)
    ann, bob = people.new("ann", "submitter"), people.new("bob", "submitter")
    order = {"verb": "cancel", "filter": GREET}
    with factory.conn.transaction():
        # No run ends.
        factory.conn.execute("lock table laneway.audit in access exclusive mode")
        sent = [await ask(ann, "POST", "/jobs/bulk", json=order) for _ in range(3)]
        assert [answer.status_code for answer in sent] == [202, 202, 429]
        assert sent[2].headers["retry-after"] == "5"
        counted = await ask(ann, "POST", "/jobs/bulk", json={**order, "dry_run": True})
        assert counted.status_code == 200
        assert (await ask(bob, "POST", "/jobs/bulk", json=order)).status_code == 202

    async def is_let() -> bool:
        return (await ask(ann, "POST", "/jobs/bulk", json=order)).status_code == 202

    await wait_until(is_let)


async def test_every_verb_needs_its_own_permission(
    ask: Ask, people: People, audit_entries: Callable[[], list[Any]]
) -> None:
    ann, eve = people.new("ann", "submitter"), people.new("eve", "approver")
    for who, verb in (
        (ann, "approve"),
        (ann, "reprioritize"),
        (eve, "cancel"),
        (eve, "delete"),
        (eve, "run_now"),
    ):
        answer = await ask(who, "POST", "/jobs/bulk", json={"verb": verb, "filter": GREET})
        assert answer.status_code == 403
    assert [act[4] for act in audit_entries()] == ["refused"] * 5


async def test_every_job_must_be_meant(ask: Ask, app: FastAPI, people: People) -> None:
    ben = people.new("ben", "operator")
    order = {"verb": "cancel"}
    assert (await ask(ben, "POST", "/jobs/bulk", json=order)).status_code == 409
    ann = people.new("ann", "submitter")
    assert (await ask(ann, "POST", "/jobs/bulk", json=order)).status_code == 409
    begun = await ask(ben, "POST", "/jobs/bulk", json={**order, "all": True})
    assert (await ended(ask, app, ben, begun))["done"] == 0


async def test_bulk_run_is_visible_to_its_caller_and_readers_of_all_jobs(
    ask: Ask, app: FastAPI, people: People
) -> None:
    ann, bob = people.new("ann", "submitter"), people.new("bob", "submitter")
    eve = people.new("eve", "viewer")
    begun = await ask(ann, "POST", "/jobs/bulk", json={"verb": "retry", "filter": GREET})
    await ended(ask, app, ann, begun)
    seen = [
        (await ask(who, "GET", begun.headers["location"])).status_code for who in (ann, bob, eve)
    ]
    assert seen == [200, 404, 200]
    assert (await ask(eve, "GET", f"/jobs/bulk/{uuid4()}")).status_code == 404


async def test_order_with_a_key_runs_once(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = people.new("ann", "submitter")
    order = {"verb": "cancel", "filter": GREET}
    key = {"Idempotency-Key": "k"}
    first = await ask(ann, "POST", "/jobs/bulk", json=order, headers=key)
    await ended(ask, app, ann, first)
    later = factory.submit(created_by="ann")
    again = await ask(ann, "POST", "/jobs/bulk", json=order, headers=key)
    assert again.json() == first.json()
    await ended(ask, app, ann, again)
    monkeypatch.setattr("laneway.control.bulk_runs.MAX_RUNS", 0)
    again = await ask(ann, "POST", "/jobs/bulk", json=order, headers=key)
    assert again.json() == first.json(), "a repeated request starts no second run"
    assert (await ask(ann, "GET", f"/jobs/{later}")).json()["status"] == "approved"


async def test_bulk_run_of_lost_server_is_reported(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory
) -> None:
    ben = people.new("ben", "operator")
    begun = await ask(ben, "POST", "/jobs/bulk", json={"verb": "retry", "filter": GREET})
    await ended(ask, app, ben, begun)
    factory.conn.execute(
        "update laneway.bulk_runs set state = 'running', updated_at = now() - interval '1 hour'"
    )
    assert (await ask(ben, "GET", begun.headers["location"])).json()["state"] == "interrupted"


async def test_run_stops_when_its_principal_loses_its_power(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory
) -> None:
    for lost in (
        "update laneway.principals set disabled_at = now() where name = 'ann'",
        "update laneway.tokens set revoked_at = now(), revoked_by = 'tests'",
        "delete from laneway.role_grants",
    ):
        factory.conn.execute("delete from laneway.tokens")
        factory.conn.execute("delete from laneway.role_grants")
        factory.conn.execute("update laneway.principals set name = id::text, disabled_at = now()")
        ann = people.new("ann", "submitter")
        for _ in range(450):
            factory.submit(created_by="ann")
        begun = await ask(ann, "POST", "/jobs/bulk", json={"verb": "cancel", "filter": GREET})
        factory.conn.execute(lost)
        admin = people.new("admin", "platform_admin")
        run = await ended(ask, app, admin, begun)
        assert run["state"] == "failed", lost
        assert run["done"] <= 400, lost


async def test_run_goes_on_when_its_principal_gains_power(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory, database: Database
) -> None:
    ann = people.new("ann", "submitter")
    for _ in range(450):
        factory.submit(created_by="ann")
    begun = await ask(ann, "POST", "/jobs/bulk", json={"verb": "cancel", "filter": GREET})
    await access.grant_role(database, "ann", "operator", "all", by="tests")
    run = await ended(ask, app, ann, begun)
    assert (run["state"], run["done"]) == ("done", 450)
