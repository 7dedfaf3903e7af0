"""Laws of the operator's verbs on schedules."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laneway.control import history, schedules
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store.database import Database
from tests.support.job_factory import JobFactory
from tests.support.store_client import PAST_CHECKS

NIGHTLY: dict[str, Any] = {"job_type": "greet", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
)


async def test_schedule_is_created_planned_and_notified(db: Database, factory: JobFactory) -> None:
    with factory.listening() as heard:
        made = await schedules.put(db, "nightly", NIGHTLY, by="ann")
    assert set(heard) == {"schedules"}
    assert made.next_at is not None
    assert made.next_at.hour in (1, 2)
    assert timedelta(0) < made.next_at - datetime.now(UTC) <= timedelta(hours=25)
    assert made.updated_by == "ann"
    assert await schedules.listing(db) == [await schedules.get(db, "nightly")] == [made]


async def test_change_keeps_unnamed_settings(db: Database) -> None:
    made = await schedules.put(db, "nightly", {**NIGHTLY, "payload": {"a": 1}}, by="ann")
    changed = await schedules.put(db, "nightly", {"priority": 5}, by="bob")
    assert (changed.cron, changed.payload, changed.priority) == ("0 3 * * *", {"a": 1}, 5)
    assert changed.next_at == made.next_at
    later = await schedules.put(db, "nightly", {"cron": "30 3 * * *"}, by="bob")
    assert later.next_at is not None
    assert later.next_at.minute == 30
    cleared = await schedules.put(db, "nightly", {"priority": None, "payload": None}, by="bob")
    assert (cleared.priority, cleared.payload) == (None, {})


@pytest.mark.parametrize(
    "change,field",
    [
        ({"cron": "x"}, "cron"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"missed": "never"}, "missed"),
        ({"payload": {"a": float("inf")}}, "payload"),
        ({"payload": [1]}, "payload"),
        ({"name": "other"}, "name"),
        ({"colour": "red"}, "colour"),
        ({"job_type": "laneway.webhook"}, "job_type"),
        ({}, "schedule"),
    ],
)
async def test_wrong_change_is_refused_by_field(
    db: Database, change: dict[str, Any], field: str
) -> None:
    await schedules.put(db, "nightly", NIGHTLY, by="ann")
    with pytest.raises(InvalidInput) as caught:
        await schedules.put(db, "nightly", change, by="ann")
    assert caught.value.field.split(".")[0] == field


async def test_payload_is_checked_against_published_schema(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("greet", SCHEMA)
    with pytest.raises(InvalidInput, match="name"):
        await schedules.put(db, "nightly", NIGHTLY, by="ann")
    await schedules.put(db, "nightly", {**NIGHTLY, "payload": {"name": "ada"}}, by="ann")
    with pytest.raises(InvalidInput, match="name"):
        await schedules.put(db, "nightly", {"payload": {"name": 1}}, by="ann")
    factory.publish("other", SCHEMA.replace("name", "title"))
    with pytest.raises(InvalidInput, match="title is required"):
        await schedules.put(db, "nightly", {"job_type": "other"}, by="ann")
    assert (await schedules.get(db, "nightly")).job_type == "greet"


async def test_schedule_is_disabled_enabled_and_deleted(db: Database, factory: JobFactory) -> None:
    await schedules.put(db, "nightly", NIGHTLY, by="ann")
    off = await schedules.disable(db, "nightly", by="ann")
    assert (off.enabled, off.next_at) == (False, None)
    factory.conn.execute("update laneway.schedules set error = 'no'")
    on = await schedules.enable(db, "nightly", by="ann")
    assert (on.enabled, on.error) == (True, None)
    assert on.next_at is not None
    await schedules.delete(db, "nightly", by="bob")
    kept = await history.history(db, "schedule", "nightly")
    assert kept[0].by == "bob"
    assert await schedules.listing(db) == []


async def test_missing_object_is_not_found(db: Database) -> None:
    for verb in (schedules.enable, schedules.disable, schedules.delete, schedules.run_now):
        with pytest.raises(NotFound):
            await verb(db, "missing", by="ann")
    for look in (schedules.get, schedules.slots):
        with pytest.raises(NotFound):
            await look(db, "missing")


async def test_run_now_submits_at_once_and_wakes(db: Database, factory: JobFactory) -> None:
    await schedules.put(db, "nightly", {**NIGHTLY, "check_name": "is_full"}, by="ann")
    with factory.listening() as heard:
        ran = await schedules.run_now(db, "nightly", by="ann")
    assert heard == ["wake greet"]
    (claim,) = factory.claim("greet")
    assert claim.job_id == ran.job_id
    (slot,) = await schedules.slots(db, "nightly")
    assert (slot.manual, slot.outcome, slot.job_id) == (True, "submitted", ran.job_id)
    with factory.listening() as heard:
        asked = await schedules.run_now(db, "nightly", by="ann", check=True)
    assert (asked.answer, asked.job_id, heard) == ("asked", None, ["schedules"])


async def test_job_that_cannot_be_submitted_is_recorded_as_error(
    db: Database, factory: JobFactory
) -> None:
    await schedules.put(db, "nightly", NIGHTLY, by="ann")
    factory.conn.execute(PAST_CHECKS.format("update laneway.schedules set workspace = ''").encode())
    with pytest.raises(Refused, match="workspace: 1 to 128 bytes"):
        await schedules.run_now(db, "nightly", by="ann")
    (slot,) = await schedules.slots(db, "nightly")
    assert slot.outcome == "failed"


async def test_rolled_back_schedule_is_planned_again(db: Database) -> None:
    await schedules.put(db, "nightly", NIGHTLY, by="ann")
    await schedules.put(db, "nightly", {"cron": "30 3 * * *"}, by="ann")
    await history.rollback(db, "schedule", "nightly", by="bob")
    back = await schedules.get(db, "nightly")
    assert (back.cron, back.next_at, back.updated_by) == ("0 3 * * *", None, "bob")
    await schedules.delete(db, "nightly", by="ann")
    await history.rollback(db, "schedule", "nightly", by="bob")
    assert (await schedules.get(db, "nightly")).cron == "0 3 * * *"


@pytest.mark.parametrize("limit", [0, 201])
async def test_page_of_slots_is_bounded(db: Database, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await schedules.slots(db, "nightly", limit=limit)
