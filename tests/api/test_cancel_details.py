"""The canceller of a job, the reason, and blocking jobs, for every reader of the job."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from laneway.client import Client
from laneway.domain.approval import Analysis, Approval
from laneway.errors import JobFailed
from laneway.store import jobs
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.api.streaming import reading
from tests.support.job_factory import JobFactory

ENDS = ("cancel_requested_at", "cancel_reason", "cancelled_by")


async def shown_end(ask: Ask, app: FastAPI, people: People, job_id: object) -> dict[str, Any]:
    """The end of a job as a viewer sees it, the same in every interface."""
    who = people.new(f"viewer of {job_id}", "viewer")
    one = (await ask(who, "GET", f"/jobs/{job_id}")).json()
    (listed,) = (await ask(who, "GET", "/jobs")).json()["items"]
    async with reading(app, who, f"/jobs/{job_id}/stream") as stream:
        streamed = (await stream.rest())[-1].data
    shown = [{name: each[name] for name in ENDS} for each in (one, listed, streamed)]
    assert shown[0] == shown[1] == shown[2]
    return shown[0]


async def test_cancelled_job_shows_reason_and_actor(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory
) -> None:
    job_id = factory.submit(created_by="ann")
    ben = people.new("ben", "operator")
    await ask(ben, "POST", f"/jobs/{job_id}/cancel", json={"reason": "wrong file"})
    shown = await shown_end(ask, app, people, job_id)
    assert (shown["cancel_reason"], shown["cancelled_by"]) == ("wrong file", "ben")
    assert shown["cancel_requested_at"] is not None
    row = factory.conn.execute("select cancel_reason, cancelled_by from laneway.jobs_view")
    assert row.fetchone() == ("wrong file", "ben")
    explained = (await ask(ben, "GET", f"/jobs/{job_id}/explain")).json()
    assert "cancelled by ben: wrong file" in explained["reasons"][0]["message"]


async def test_running_job_shows_who_requested_cancel(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    job_id = factory.running(created_by="ann").job_id
    ben = people.new("ben", "operator")
    await ask(ben, "POST", f"/jobs/{job_id}/cancel", json={"reason": "too slow"})
    shown = (await ask(ben, "GET", f"/jobs/{job_id}")).json()
    assert (shown["status"], shown["cancel_reason"]) == ("running", "too slow")
    assert shown["cancelled_by"] == "ben"


async def test_secret_in_reason_by_sql_is_hidden(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory, database: Database
) -> None:
    job_id = factory.submit(created_by="ann")
    factory.conn.execute(
        "select laneway.cancel(seq, 'ben', 'leaked api_key=hunter2hunter2') from laneway.jobs"
    )
    shown = await shown_end(ask, app, people, job_id)
    assert shown["cancel_reason"] == "leaked api_key=***"
    ben = people.new("ben", "operator")
    explained = (await ask(ben, "GET", f"/jobs/{job_id}/explain")).text
    assert "api_key=***" in explained
    with pytest.raises(JobFailed) as failed:
        await Client(lambda: database, database.settings).wait(job_id, timeout=30)
    assert "hunter2" not in explained + str(failed.value)


async def test_secret_in_comment_by_sql_is_hidden(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("gated", approval=Approval())
    job_id = factory.submit("gated", created_by="ann")
    factory.conn.execute(
        "select laneway.decide(seq, true, 'ben', 'with password=hunter2hunter2', null)"
        " from laneway.jobs"
    )
    shown = (await ask(people.new("ben", "operator"), "GET", f"/jobs/{job_id}")).json()
    assert [one["comment"] for one in shown["decisions"]] == ["with password=***"]


@pytest.mark.parametrize("how", ["rejected", "expired"])
async def test_job_without_approval_shows_no_cancel_request(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory, how: str
) -> None:
    factory.publish("costly", approval=Approval())
    job_id = factory.submit("costly", created_by="ann")
    if how == "rejected":
        eve = people.new("eve", "approver")
        await ask(eve, "POST", f"/jobs/{job_id}/reject", json={"reason": "too much"})
        expected = {"cancel_reason": "rejected: too much", "cancelled_by": "eve"}
    else:
        factory.conn.execute("update laneway.awaiting set expires_at = now()")
        factory.conn.execute("select laneway.expire_approvals()")
        expected = {"cancel_reason": "approval expired", "cancelled_by": "laneway"}
    assert await shown_end(ask, app, people, job_id) == {"cancel_requested_at": None, **expected}


async def test_explain_names_own_jobs_and_counts_others(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    factory.conn.execute("update laneway.worker_lanes set max_slots = 3 where name = 'interactive'")
    mine = factory.running("ingestion", created_by="ann").job_id
    theirs = [factory.running("ingestion", created_by="bob").job_id for _ in range(2)]
    first = factory.submit("ingestion", created_by="ann")
    other = factory.submit("ingestion", created_by="bob")
    job_id = factory.submit("ingestion", created_by="ann")
    explained = (await ask(ann, "GET", f"/jobs/{job_id}/explain")).json()
    reasons = {one["code"]: one["message"] for one in explained["reasons"]}
    assert f"are in use, held by {mine} and 2 other jobs; " in reasons["slots_full"]
    assert "2 jobs wait before it" in reasons["behind_others"]
    assert reasons["behind_others"].endswith(f"of your own, these come first: {first}")
    for hidden in (*theirs, other):
        assert str(hidden) not in str(explained)


def test_analysis_does_not_count_as_try(factory: JobFactory) -> None:

    factory.publish("costly", approval=Approval(), has_analysis=True)
    job_id = factory.analyzed(Analysis(plan="much"), "costly")
    assert factory.run(jobs.get(job_id)).tries == 0
    factory.conn.execute("select laneway.decide(seq, true, 'eve', null, null) from laneway.jobs")
    waiting = factory.run(jobs.get(job_id))
    assert (waiting.attempt, waiting.tries) == (1, 0)
    (claim,) = factory.claim("costly")
    running = factory.run(jobs.get(job_id))
    assert (running.attempt, running.tries) == (2, 1)
    factory.settle(claim, "fail", error='{"type": "E", "message": "m"}', delay_s=0.0)
    assert factory.run(jobs.get(job_id)).tries == 1
    (claim,) = factory.claim("costly")
    factory.settle(claim)
    assert factory.run(jobs.get(job_id)).tries == 2
