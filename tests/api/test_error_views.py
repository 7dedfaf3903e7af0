"""Texts of errors: every reader sees the public one, debuggers and owners the private one."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from fastapi import FastAPI

from laneway.domain.job_error import PRIVATE_MESSAGE
from laneway.engine.run.attempt_outcomes import error_json
from tests.api.conftest import Ask, People, Principal
from tests.api.streaming import reading
from tests.support.job_factory import JobFactory

TEXT = "table pages of customer 7"
TRACE = "Traceback: here"


@pytest.fixture
def readers(people: People) -> dict[str, Principal]:
    roles = {"ann": "submitter", "ben": "operator", "eve": "viewer"}
    return {name: people.new(name, role) for name, role in roles.items()}


def failed(factory: JobFactory, *, is_public: bool) -> str:
    claim = factory.running(created_by="ann", max_retries=0)
    factory.settle(claim, "giveup", error=error_json("Boom", TEXT, TRACE, is_public=is_public))
    return str(claim.job_id)


async def texts_of(ask: Ask, app: FastAPI, who: Principal, job_id: str) -> dict[str, Any]:
    """The texts of a job that a reader sees, per interface."""
    async with reading(app, who, f"/jobs/{job_id}/stream") as stream:
        heard = await stream.rest()
    shown = {
        "one": (await ask(who, "GET", f"/jobs/{job_id}")).json(),
        "list": (await ask(who, "GET", "/jobs")).json(),
        "explain": (await ask(who, "GET", f"/jobs/{job_id}/explain")).json(),
        "stream": [each.data for each in heard],
    }
    return {door: json.dumps(each) for door, each in shown.items()}


async def test_private_message_is_for_debuggers_and_owners(
    ask: Ask, app: FastAPI, readers: dict[str, Principal], factory: JobFactory
) -> None:
    job_id = failed(factory, is_public=False)
    for name, who in readers.items():
        for door, text in (await texts_of(ask, app, who, job_id)).items():
            assert (TEXT in text) is (name != "eve"), (name, door)
            assert (PRIVATE_MESSAGE in text) is (name == "eve"), (name, door)
            assert "Boom" in text


async def test_public_message_is_visible_to_every_reader_of_job(
    ask: Ask, app: FastAPI, readers: dict[str, Principal], factory: JobFactory
) -> None:
    job_id = failed(factory, is_public=True)
    for name, who in readers.items():
        for door, text in (await texts_of(ask, app, who, job_id)).items():
            assert TEXT in text, (name, door)
            assert TRACE not in text or name != "eve", (name, door)


async def test_all_readers_of_topic_get_their_own_text_of_error(
    app: FastAPI, readers: dict[str, Principal], factory: JobFactory
) -> None:
    claim = factory.running(created_by="ann", max_retries=0)
    path, topics = "/events", ("jobs",)
    async with (
        reading(app, readers["ben"], path, topics=topics) as debugger,
        reading(app, readers["eve"], path, topics=topics) as viewer,
    ):
        await debugger.until("stream.opened")
        (opened,) = await viewer.until("stream.opened")
        factory.settle(claim, "giveup", error=error_json("Boom", TEXT))
        assert (await debugger.until("job.failed"))[-1].data["error"]["message"] == TEXT
        live = (await viewer.until("job.failed"))[-1]
    async with reading(app, readers["eve"], path, topics=topics, last=opened.id) as viewer:
        missed = (await viewer.until("job.failed"))[-1]
    assert live.data["error"]["message"] == missed.data["error"]["message"] == PRIVATE_MESSAGE


async def test_laneways_own_errors_are_public(
    ask: Ask, readers: dict[str, Principal], factory: JobFactory
) -> None:
    claim = factory.running(created_by="ann", max_retries=0)
    factory.conn.execute("update laneway.lease set lease_until = now() - interval '1 hour'")
    factory.conn.execute(
        "select laneway.settle(array[x.seq], array[x.attempt], array['lost'], null,"
        " array[x.error], null, null) from laneway.overdue_leases(now()) x"
    )
    shown = (await ask(readers["eve"], "GET", f"/jobs/{claim.job_id}")).json()
    assert shown["error"]["message"].startswith("worker lost")


async def test_search_finds_private_message_only_for_its_readers(
    ask: Ask, readers: dict[str, Principal], factory: JobFactory
) -> None:
    secret, shared = failed(factory, is_public=False), failed(factory, is_public=True)
    for name, who in readers.items():
        found = (await ask(who, "GET", "/jobs?q=customer%207")).json()["items"]
        expected = [shared] if name == "eve" else [shared, secret]
        assert [one["id"] for one in found] == expected, name
        by_type = (await ask(who, "GET", "/jobs?q=Boom")).json()["items"]
        assert len(by_type) == 2, name


async def test_bulk_preview_counts_private_messages_only_for_their_readers(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    failed(factory, is_public=False)
    people.role("retrier", "jobs:read", "jobs:cancel")
    order = {"verb": "retry", "filter": {"q": "customer 7"}, "dry_run": True}
    for role, matched in (("retrier", 0), ("operator", 1)):
        answer = await ask(people.new(f"{role} of all", role), "POST", "/jobs/bulk", json=order)
        assert answer.json()["matched"] == matched, role


async def test_explain_shows_error_with_ids_as_it_is(
    ask: Ask, readers: dict[str, Principal], factory: JobFactory
) -> None:
    text = f"no customers {uuid4()}, {uuid4()}"
    claim = factory.running(created_by="ann", max_retries=0)
    factory.settle(claim, "giveup", error=error_json("Boom", text, is_public=True))
    shown = (await ask(readers["ann"], "GET", f"/jobs/{claim.job_id}/explain")).json()
    assert text in shown["reasons"][0]["message"]


async def test_explain_names_sessions_only_to_readers_of_workers(
    ask: Ask, readers: dict[str, Principal], factory: JobFactory, dsn: str
) -> None:
    job_id = factory.submit(created_by="ann")
    with psycopg.connect(dsn, application_name="payroll") as silent:
        silent.execute("select pg_advisory_xact_lock(5577006791947779410)")
        silent.execute("select pg_sleep(1)")
        for name, is_named in (("ann", False), ("eve", True)):
            reasons = (await ask(readers[name], "GET", f"/jobs/{job_id}/explain")).json()["reasons"]
            (message,) = (one["message"] for one in reasons if one["code"] == "locked")
            assert ("payroll" in message) is is_named, name
            assert "claims wait for it" in message
