"""Events over HTTP: who may send them, where, and to whom."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.api.conftest import Ask, People


def sent(conn: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    columns = "workspace, name, key, payload, sent_by"
    return conn.execute(f"select {columns} from laneway.sent_events order by id").fetchall()


async def test_event_is_stored_with_its_sender(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", people.role("sender", "events:send"))
    body = {"name": "reviewed", "key": "folder-7", "payload": {"by": "reviewer"}}
    answer = await ask(ann, "POST", "/events", json=body)
    assert (answer.status_code, answer.json()["delivered"]) == (202, 0), answer.text
    assert sent(conn) == [("default", "reviewed", "folder-7", {"by": "reviewer"}, "ann")]


async def test_event_is_kept_as_long_as_its_sender_wants(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", people.role("sender", "events:send"))
    body = {"name": "reviewed", "retention_s": 90}
    assert (await ask(ann, "POST", "/events", json=body)).status_code == 202
    row = conn.execute("select (expires_at - sent_at)::text from laneway.sent_events").fetchone()
    assert row == ("00:01:30",)
    answer = await ask(ann, "POST", "/events", json={**body, "retention_s": 0})
    assert answer.status_code == 422


async def test_repeated_request_sends_one_event(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", people.role("sender", "events:send"))
    key = {"Idempotency-Key": "once"}
    first = await ask(ann, "POST", "/events", json={"name": "reviewed"}, headers=key)
    second = await ask(ann, "POST", "/events", json={"name": "reviewed"}, headers=key)
    assert first.json() == second.json()
    assert len(sent(conn)) == 1


async def test_event_of_another_workspace_is_refused(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new(
        "ann", people.role("sender", "events:send"), scope="workspace", workspace="ours"
    )
    answer = await ask(ann, "POST", "/events", json={"name": "x", "workspace": "theirs"})
    assert answer.status_code == 403
    answer = await ask(ann, "POST", "/events", json={"name": "x", "workspace": "ours"})
    assert answer.status_code == 202
    assert [row[0] for row in sent(conn)] == ["ours"]


@pytest.mark.parametrize("workspace", ["default", "lab"])
@pytest.mark.parametrize("bound_to", [None, "lab"])
async def test_grant_for_own_jobs_sends_no_events(
    ask: Ask, people: People, conn: psycopg.Connection[Any], workspace: str, bound_to: str | None
) -> None:
    role = people.role("sender", "events:send", "jobs:read")
    ann = people.new("ann", role, scope="own", workspace=bound_to)
    answer = await ask(ann, "POST", "/events", json={"name": "x", "workspace": workspace})
    assert answer.status_code == 403
    detail = answer.json()["detail"]
    assert "events:send in the workspace " + workspace in detail
    assert "own" in detail
    assert sent(conn) == []
    me = (await ask(ann, "GET", "/me")).json()["permissions"]
    assert "events:send" not in me
    assert "jobs:read" in me


@pytest.mark.parametrize(
    "permission, path",
    [
        ("schedules:view", "/admin/schedules"),
        ("metrics:read", "/metrics"),
        ("access:manage", "/admin/tokens"),
        ("audit:read", "/admin/audit"),
        ("workers:view", "/admin/workers/lanes"),
        ("workers:view", "/admin/limits"),
        ("workers:manage", "/admin/webhooks"),
    ],
)
async def test_grant_for_own_jobs_covers_nothing_without_owner(
    ask: Ask, people: People, permission: str, path: str
) -> None:
    ann = people.new("ann", people.role("narrow", permission), scope="own")
    assert (await ask(ann, "GET", path)).status_code == 403


@pytest.mark.parametrize("role", ["operator", "submitter", "viewer", "approver"])
async def test_seeded_roles_but_the_admin_send_no_events(
    ask: Ask, people: People, role: str
) -> None:
    answer = await ask(people.new("ann", role), "POST", "/events", json={"name": "x"})
    assert answer.status_code == 403
    admin = people.new("root", "platform_admin")
    assert (await ask(admin, "POST", "/events", json={"name": "x"})).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 201},
        {"name": "a\u0000b"},
        {"name": "x", "key": "k" * 513},
        {"name": "x", "payload": {"t": "\u0000"}},
        {"name": "x", "more": 1},
    ],
)
async def test_wrong_events_are_refused(
    ask: Ask, people: People, conn: psycopg.Connection[Any], body: Any
) -> None:
    admin = people.new("root", "platform_admin")
    assert (await ask(admin, "POST", "/events", json=body)).status_code == 422
    assert sent(conn) == []


async def test_grant_bounds_the_events_that_are_kept(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    role = people.role("sender", "events:send")
    ann, bob = people.new("ann"), people.new("bob", role)
    people.grant(ann.id, role, max_queued=2)
    event = {"name": "reviewed"}
    for _ in range(2):
        assert (await ask(ann, "POST", "/events", json=event)).status_code == 202
    full = await ask(ann, "POST", "/events", json=event)
    problem = full.json()
    assert (full.status_code, problem["code"]) == (429, "quota_exceeded")
    assert (problem["bound"], problem["limit"]) == ("max_queued", 2)
    assert "Retry-After" in full.headers
    # In all workspaces together; other principals have their own room.
    north = {**event, "workspace": "north"}
    assert (await ask(ann, "POST", "/events", json=north)).status_code == 429
    assert (await ask(bob, "POST", "/events", json=north)).status_code == 202
    assert [row[0] for row in sent(conn)] == ["default", "default", "north"]
    entries = "select count(*) from laneway.audit where action = 'event.sent' and outcome = 'done'"
    assert conn.execute(entries).fetchone() == (3,)


async def test_grant_bounds_the_bytes_of_kept_events(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    people.grant(ann.id, people.role("sender", "events:send"), max_queued_bytes=50)
    large = {"name": "reviewed", "payload": "x" * 60}
    refused = (await ask(ann, "POST", "/events", json=large)).json()
    assert (refused["bound"], refused["limit"]) == ("max_queued_bytes", 50)
    assert (await ask(ann, "POST", "/events", json={**large, "payload": 1})).status_code == 202


@pytest.mark.parametrize("retention_s, least, most", [(90, 30, 90), (86400, 3600, 3600)])
async def test_sender_learns_when_a_kept_event_makes_room(
    ask: Ask, people: People, retention_s: int, least: int, most: int
) -> None:
    ann = people.new("ann")
    people.grant(ann.id, people.role("sender", "events:send"), max_queued=1)
    event = {"name": "x", "retention_s": retention_s}
    assert (await ask(ann, "POST", "/events", json=event)).status_code == 202
    full = await ask(ann, "POST", "/events", json=event)
    assert full.status_code == 429
    assert least <= int(full.headers["Retry-After"]) <= most


async def test_expired_events_make_room_for_others(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    role = people.role("sender", "events:send")
    ann = people.new("ann")
    people.grant(ann.id, role, max_queued=1)
    assert (await ask(ann, "POST", "/events", json={"name": "x"})).status_code == 202
    assert (await ask(ann, "POST", "/events", json={"name": "x"})).status_code == 429
    conn.execute("update laneway.sent_events set expires_at = clock_timestamp()")
    conn.execute("update laneway.queue_usage set swept_at = '2020-01-01'")
    assert (await ask(ann, "POST", "/events", json={"name": "x"})).status_code == 202


async def test_events_are_counted_apart_from_jobs(ask: Ask, people: People) -> None:
    role = people.role("sender", "events:send", "jobs:submit", "jobs:read")
    ann = people.new("ann")
    people.grant(ann.id, role, max_queued=1)
    assert (await ask(ann, "POST", "/events", json={"name": "x"})).status_code == 202
    assert (await ask(ann, "POST", "/jobs", json={"job_type": "t"})).status_code == 202
    for path, body in (("/events", {"name": "x"}), ("/jobs", {"job_type": "t"})):
        assert (await ask(ann, "POST", path, json=body)).status_code == 429
