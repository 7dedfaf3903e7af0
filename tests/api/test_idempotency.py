"""A POST with an Idempotency-Key is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from fastapi import FastAPI

from laneway.store import idempotency
from laneway.store.database import run_sync
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

KEY = {"Idempotency-Key": "k1"}
BODY = {"job_type": "greet"}


def count(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("select count(*) from laneway.jobs").fetchone()
    return int(row[0]) if row else 0


async def test_same_request_gets_the_same_answer(
    ask: Ask, people: People, conn: psycopg.Connection[Any], audit_entries: Callable[[], list[Any]]
) -> None:
    ann = people.new("ann", "submitter")
    first = await ask(ann, "POST", "/jobs", json=BODY, headers=KEY)
    second = await ask(ann, "POST", "/jobs", json=BODY, headers=KEY)
    assert (first.status_code, second.status_code) == (202, 202)
    assert (first.content, first.headers["location"]) == (
        second.content,
        second.headers["location"],
    )
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert count(conn) == 1
    assert len(audit_entries()) == 1


async def test_another_request_with_the_key_is_refused(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    mine = factory.submit("greet", created_by="ann")
    await ask(ann, "POST", "/jobs", json=BODY, headers=KEY)
    for path, body in (
        ("/jobs", {**BODY, "priority": 1}),
        (f"/jobs/{mine}/cancel", {}),
        ("/jobs/batch", {"jobs": [BODY]}),
    ):
        other = await ask(ann, "POST", path, json=body, headers=KEY)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_key_is_of_one_principal_and_of_one_day(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann, ben = people.new("ann", "submitter"), people.new("ben", "submitter")
    for who in (ann, ben):
        assert (await ask(who, "POST", "/jobs", json=BODY, headers=KEY)).json()[
            "created_by"
        ] == who.name
    conn.execute("update laneway.idempotency set made_at = made_at - interval '25 hours'")
    again = await ask(ann, "POST", "/jobs", json={**BODY, "priority": 1}, headers=KEY)
    assert again.status_code == 202
    assert count(conn) == 3


async def test_refused_request_may_be_sent_again(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    mine = factory.submit("greet", created_by="ann")
    early = await ask(ann, "POST", f"/jobs/{mine}/retry", headers=KEY)
    assert early.status_code == 409
    assert (await ask(ann, "POST", f"/jobs/{mine}/cancel")).status_code == 200
    late = await ask(ann, "POST", f"/jobs/{mine}/retry", headers=KEY)
    assert (late.status_code, late.json()["status"]) == (200, "approved")


async def test_requests_that_meet_are_done_once(
    ask: Ask, app: FastAPI, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", "submitter")
    answers = await asyncio.gather(
        *(ask(ann, "POST", "/jobs", json=BODY, headers=KEY) for _ in range(8))
    )
    assert count(conn) == 1
    for answer in answers:
        under_way = answer.status_code == 409 and answer.json()["code"] == "idempotency_under_way"
        assert under_way or answer.status_code == 202


async def test_repeated_request_in_progress_is_reported(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", "submitter")
    with conn.transaction():
        assert run_sync(conn, idempotency.lock(ann.id, KEY["Idempotency-Key"]))
        answer = await ask(ann, "POST", "/jobs", json=BODY, headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_under_way")
    assert (await ask(ann, "POST", "/jobs", json=BODY, headers=KEY)).status_code == 202


async def test_keys_no_row_can_hold_are_refused(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter")
    for key in ("", "x" * 256):
        answer = await ask(ann, "POST", "/jobs", json=BODY, headers={"Idempotency-Key": key})
        assert answer.status_code == 422
