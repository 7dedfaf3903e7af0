"""Laws of the operator's history and rollback."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.control import history, lanes, limits, schedules
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store.database import Database
from tests.support.job_factory import JobFactory


async def test_history_lists_changes_with_actor_newest_first(db: Database) -> None:
    await lanes.drain(db, "system", by="ann")
    await lanes.tune(db, "system", {"max_slots": 3}, by="bob")
    await limits.tune(db, "openai", {"max_concurrent": 3}, by="ann")
    found = [(each.by, each.differences) for each in await history.history(db, "lane", "system")]
    assert found == [("bob", {"max_slots": (1, 3)}), ("ann", {"enabled": (True, False)})]
    assert [each.name for each in await history.history(db, "limit")] == ["openai"]
    both = await history.history(db, ("lane", "limit"), limit=2)
    assert [each.kind for each in both] == ["limit", "lane"]
    older = await history.history(db, ("lane", "limit"), before=both[-1].id)
    assert [each.by for each in older] == ["ann"]


async def test_rollback_undoes_and_wakes_the_workers(db: Database, factory: JobFactory) -> None:
    factory.submit("restore")
    await lanes.drain(db, "system", by="ann")
    assert factory.claim("restore") == []
    with factory.listening() as heard:
        change = await history.rollback(db, "lane", "system", by="bob")
    assert heard == ["wake *"]
    assert change is not None
    assert (change.by, change.name, change.differences) == (
        "bob", "system", {"enabled": (False, True)},
    )  # fmt: skip
    assert len(factory.claim("restore")) == 1


async def test_going_back_to_where_it_is_changes_nothing(db: Database, factory: JobFactory) -> None:
    await limits.tune(db, "openai", {"max_concurrent": 3}, by="ann")
    (change,) = await history.history(db, "limit", "openai")
    with factory.listening() as heard:
        assert await history.rollback(db, "limit", "openai", to=change.id, by="bob") is None
    assert heard == []


async def test_creation_is_undone_and_the_deletion_too(db: Database) -> None:
    await lanes.create(db, {"name": "video", "job_types": ["cut"], "max_slots": 4}, by="ann")
    gone = await history.rollback(db, "lane", "video", by="bob")
    assert gone is not None
    assert gone.verb == "deleted"
    back = await history.rollback(db, "lane", "video", by="cleo")
    assert back is not None
    assert (back.verb, back.by) == ("created", "cleo")
    lane = {each.lane.name: each.lane for each in await lanes.inspect(db)}["video"]
    assert (lane.job_types, lane.max_slots, lane.updated_by) == (("cut",), 4, "cleo")


async def test_schedule_is_rolled_back_and_planned_again(db: Database) -> None:
    await schedules.put(db, "nightly", {"job_type": "t", "cron": "0 3 * * *"}, by="ann")
    for minute in (10, 20):
        await schedules.put(db, "nightly", {"cron": f"{minute} 4 * * *"}, by="ann")
    await schedules.delete(db, "nightly", by="ann")
    assert [each.by for each in await history.history(db, "schedule", "nightly")] == ["ann"] * 4
    assert await history.rollback(db, "schedule", "nightly", by="bob") is not None
    back = await schedules.get(db, "nightly")
    assert (back.cron, back.updated_by) == ("20 4 * * *", "bob")
    first = (await history.history(db, "schedule", "nightly"))[-1]
    assert await history.rollback(db, "schedule", "nightly", to=first.id, by="bob") is not None
    assert (await schedules.get(db, "nightly")).cron == "0 3 * * *"


async def test_rollback_does_not_delete_objects_in_use(db: Database, factory: JobFactory) -> None:
    await lanes.create(db, {"name": "video", "job_types": ["cut"]}, by="ann")
    factory.publish("cut")
    factory.register(("cut",))
    with pytest.raises(Refused, match=r"in use \(cut\); move them"):
        await history.rollback(db, "lane", "video", by="bob")
    await limits.tune(db, "gpu", {"max_concurrent": 1}, by="ann")
    factory.conn.execute("update laneway.job_types set limits = '{gpu}' where name = 'cut'")
    with pytest.raises(Refused, match="the handlers of cut need it"):
        await history.rollback(db, "limit", "gpu", by="bob")


async def test_job_type_that_went_elsewhere_is_named(db: Database, factory: JobFactory) -> None:
    factory.conn.execute("delete from laneway.worker_lanes where name = 'interactive'")
    await lanes.move_type(db, "polarity", "system", by="ann")
    with pytest.raises(Refused, match="polarity may be in one lane only"):
        await history.rollback(db, "lane", "interactive", by="bob")
    await lanes.move_type(db, "polarity", "default", by="ann")
    assert await history.rollback(db, "lane", "interactive", by="bob") is not None


async def test_lanes_that_must_exist_are_not_deleted(db: Database, factory: JobFactory) -> None:
    """The history does not have their creation; if it had, a rollback would not undo it."""
    for name in ("default", "analysis"):
        factory.conn.execute(
            "insert into laneway.control_history (by, kind, name, after)"
            " values ('x', 'lane', %s, '{}')",
            [name],
        )
        with pytest.raises(Refused, match="there must always be one"):
            await history.rollback(db, "lane", name, by="bob")


async def test_rollback_without_history_is_not_found(db: Database) -> None:
    for name, to, words in (
        ("missing", None, "no lane missing"),
        ("system", None, "no change of the lane system"),
        ("system", 99, "no change 99 of the lane system"),
    ):
        with pytest.raises(NotFound, match=words):
            await history.rollback(db, "lane", name, to=to, by="bob")
    assert await history.history(db, "lane", "missing") == []


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "job"}, {"name": "Bad Name"}, {"limit": 0}, {"limit": 201}, {"before": -1},
        {"before": 2**63},
    ],
)  # fmt: skip
async def test_question_outside_the_rules_is_refused(db: Database, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await history.history(db, options.pop("kind", "lane"), options.pop("name", None), **options)


@pytest.mark.parametrize(
    "options",
    [{"kind": "gate"}, {"name": "x; drop"}, {"to": -1}, {"to": True}, {"to": 2**63}, {"by": ""}],
)
async def test_rollback_outside_the_rules_is_refused(db: Database, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await history.rollback(
            db,
            options.pop("kind", "lane"),
            options.pop("name", "system"),
            by=options.pop("by", "me"),
            **options,
        )


async def test_schedule_with_a_payload_above_the_default_limits_is_put_back(dsn: str) -> None:
    deep: dict[str, object] = {"text": "x" * (2 * 1024 * 1024)}
    for _ in range(80):
        deep = {"deeper": deep}
    generous = Settings.load(
        database_url=dsn, max_payload_bytes=4 * 1024 * 1024, max_payload_depth=100
    )
    db = Database(dsn, generous, size=1)
    cron = {"job_type": "t", "cron": "0 3 * * *"}
    await schedules.put(db, "large", {**cron, "payload": deep}, by="ann")
    await schedules.put(db, "large", {"payload": {"small": True}}, by="ann")
    assert await history.rollback(db, "schedule", "large", by="bob") is not None
    assert (await schedules.get(db, "large")).payload == deep
    await schedules.delete(db, "large", by="ann")
    assert await history.rollback(db, "schedule", "large", by="bob") is not None
    assert (await schedules.get(db, "large")).payload == deep
    # A manual change is checked, unlike a rollback.
    async with db.connection() as conn:
        with pytest.raises(psycopg.errors.Error, match="payload"):
            await conn.execute(
                "update laneway.schedules set payload = jsonb_build_object('more', payload)"
                " where name = 'large'"
            )
    await db.close()
