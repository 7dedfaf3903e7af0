"""Schedules over HTTP: each belongs to a workspace and to the lane of its job type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

SCHEDULES = "/admin/schedules"
NIGHTLY = {"name": "nightly", "job_type": "restore", "cron": "0 3 * * *"}
Acts = Callable[[], list[tuple[Any, ...]]]


async def test_schedule_lives_from_its_creation_to_its_deletion(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    made = await ask(olga, "POST", SCHEDULES, json={**NIGHTLY, "payload": {"deep": True}})
    assert made.status_code == 201
    assert made.headers["location"] == f"{SCHEDULES}/nightly"
    assert (made.json()["payload"], made.json()["updated_by"]) == ({"deep": True}, "olga")
    assert made.json()["next_at"] is not None

    path = f"{SCHEDULES}/nightly"
    assert (await ask(olga, "GET", path)).json()["cron"] == "0 3 * * *"
    changed = await ask(olga, "PATCH", path, json={"cron": "0 4 * * *", "priority": 5})
    assert (changed.json()["cron"], changed.json()["priority"]) == ("0 4 * * *", 5)
    assert changed.json()["payload"] == {"deep": True}

    ran = await ask(olga, "POST", f"{path}/run")
    assert (ran.status_code, ran.json()["answer"]) == (200, "submitted")
    (slot,) = (await ask(olga, "GET", f"{path}/slots")).json()["items"]
    assert (slot["manual"], slot["job_id"]) == (True, ran.json()["job_id"])

    back = await ask(olga, "POST", f"{path}/rollback")
    assert back.json()["change"]["after"]["cron"] == "0 3 * * *"
    history = (await ask(olga, "GET", f"{path}/history")).json()["items"]
    assert [change["verb"] for change in history] == ["changed", "changed", "created"]

    assert (await ask(olga, "DELETE", path)).status_code == 204
    assert (await ask(olga, "GET", path)).status_code == 404
    assert [(act[2], act[4]) for act in audit_entries()] == [("schedule", "done")] * 5


async def test_schedule_has_words_and_next_runs_until_stopped(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    made = (await ask(olga, "POST", SCHEDULES, json=NIGHTLY)).json()
    assert made["words"] == "At 03:00, every day, UTC"
    (listed,) = (await ask(olga, "GET", SCHEDULES)).json()["items"]
    assert made["next_fires"] == listed["next_fires"]
    fires = [datetime.fromisoformat(each["at"]) for each in listed["next_fires"]]
    next_at = datetime.fromisoformat(listed["next_at"])
    assert fires == [next_at + timedelta(days=day) for day in range(3)]
    stopped = await ask(olga, "PATCH", f"{SCHEDULES}/nightly", json={"enabled": False})
    assert stopped.json()["next_fires"] == []


async def test_schedule_is_listed_with_its_last_ten_outcomes(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    olga = people.new("olga", "operator")
    await ask(olga, "POST", SCHEDULES, json=NIGHTLY)
    await ask(olga, "POST", SCHEDULES, json={**NIGHTLY, "name": "unused"})
    ended = [factory.completed(), factory.failed(), factory.submit(), None]
    for day in range(1, 13):
        factory.conn.execute(
            "insert into laneway.schedule_slots (schedule, slot, outcome, job_id)"
            " values ('nightly', make_date(2026, 1, %s), %s, %s)",
            (day, "submitted" if (job := ended[day % 4]) else "skipped", job),
        )
    found, unused = (await ask(olga, "GET", SCHEDULES)).json()["items"]
    assert [slot["slot"][:10] for slot in found["recent"]] == [
        f"2026-01-{day:02}" for day in range(12, 2, -1)
    ]
    assert [slot["job_ended"] for slot in found["recent"][:4]] == [
        "completed", None, None, "failed",
    ]  # fmt: skip
    assert found["last"] == found["recent"][0]
    assert (unused["recent"], unused["last"]) == ([], None)
    slots = (await ask(olga, "GET", f"{SCHEDULES}/nightly/slots")).json()["items"]
    assert slots[:10] == found["recent"]


async def test_second_schedule_of_a_name_is_a_conflict(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    await ask(olga, "POST", SCHEDULES, json=NIGHTLY)
    again = await ask(olga, "POST", SCHEDULES, json={**NIGHTLY, "cron": "0 5 * * *"})
    assert again.status_code == 409
    assert (await ask(olga, "GET", f"{SCHEDULES}/nightly")).json()["cron"] == "0 3 * * *"


BAD_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"cron": "0 25 * * *"}, "cron"),
    ({"timezone": "Mars/Base"}, "timezone"),
    ({"payload": [1]}, "payload"),
    ({"payload": {"a": "\0"}}, "payload"),
    ({"missed": "never"}, "missed"),
    ({"created_at": "2020-01-01T00:00:00Z"}, "created_at"),
    ({"tags": ["a", 1]}, "tags.1"),
    ({}, "schedule"),
]


async def test_bad_change_names_its_field(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    await ask(olga, "POST", SCHEDULES, json=NIGHTLY)
    for change, field in BAD_CHANGES:
        answer = await ask(olga, "PATCH", f"{SCHEDULES}/nightly", json=change)
        assert answer.status_code == 422, change
        assert field in answer.json()["errors"][0]["field"]


async def test_schedule_out_of_reach_is_not_there(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    admin = people.new("admin", "platform_admin")
    await ask(admin, "POST", SCHEDULES, json={**NIGHTLY, "workspace": "theirs"})
    strangers = [
        people.new("team", "operator", workspace="ours"),
        people.new("lane", "operator", lanes=["interactive"]),
    ]
    path = f"{SCHEDULES}/nightly"
    for who in strangers:
        assert (await ask(who, "GET", SCHEDULES)).json()["items"] == []
        assert (await ask(who, "GET", path)).status_code == 404
        assert (await ask(who, "GET", f"{path}/slots")).status_code == 404
        assert (await ask(who, "PATCH", path, json={"enabled": False})).status_code == 404
        assert (await ask(who, "DELETE", path)).status_code == 404
        assert (await ask(who, "POST", f"{path}/run")).status_code == 404
        assert (await ask(who, "GET", f"{path}/history")).status_code == 403
        assert (await ask(who, "POST", f"{path}/rollback")).status_code == 403
    assert [act[4] for act in audit_entries()] == ["done"] + ["refused"] * 10
    assert {act[3] for act in audit_entries() if act[2] == "schedule"} == {"nightly"}


async def test_schedule_stays_in_scope_of_its_writer(ask: Ask, people: People) -> None:
    team = people.new("team", "operator", workspace="ours")
    assert (await ask(team, "POST", SCHEDULES, json=NIGHTLY)).status_code == 403
    own = await ask(team, "POST", SCHEDULES, json={**NIGHTLY, "workspace": "ours"})
    assert own.status_code == 201
    path = f"{SCHEDULES}/nightly"
    assert (await ask(team, "PATCH", path, json={"workspace": "theirs"})).status_code == 403
    assert (await ask(team, "PATCH", path, json={"enabled": False})).status_code == 200

    lane = people.new("lane", "operator", lanes=["system"])
    assert (await ask(lane, "PATCH", path, json={"job_type": "polarity"})).status_code == 403
    assert (await ask(lane, "PATCH", path, json={"job_type": "source_embedding"})).is_success


async def test_reader_cannot_change(ask: Ask, people: People, audit_entries: Acts) -> None:
    admin = people.new("admin", "platform_admin")
    await ask(admin, "POST", SCHEDULES, json=NIGHTLY)
    otto = people.new("otto", "operator", lanes=["interactive"])
    people.grant(otto.id, people.role("onlooker", "schedules:view"))
    path = f"{SCHEDULES}/nightly"
    assert (await ask(otto, "GET", path)).status_code == 200
    assert (await ask(otto, "DELETE", path)).status_code == 403
    assert audit_entries()[-1][2:] == ("schedule", "nightly", "refused")
