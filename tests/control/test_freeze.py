"""Laws of freeze and thaw."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from laneway.control import freeze as verbs
from laneway.control import history, lanes
from laneway.control.freeze import freeze, frozen, thaw
from laneway.domain.codec import to_json
from laneway.domain.freeze import Thawed
from laneway.errors import DatabaseUnavailable, InvalidInput, NotFound, Refused
from laneway.store import handler_waits
from laneway.store.database import Database
from laneway.store.handler_waits import NewWait
from tests.support.job_factory import JobFactory


class Pace:
    """A clock that moves only during waits, and runs actions meanwhile."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self.now = 100.0
        self.pauses: list[float] = []
        self.happenings = list(happenings)

    def clock(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if self.happenings:
            happened = self.happenings.pop(0)()
            if isinstance(happened, Awaitable):
                await happened


async def enabled(db: Database) -> set[str]:
    return {each.lane.name for each in await lanes.inspect(db) if each.lane.enabled}


async def test_enabled_lanes_are_drained_and_restored(db: Database, factory: JobFactory) -> None:
    await lanes.drain(db, "maintenance", by="me")
    before = await enabled(db)
    factory.submit()
    quiet = await freeze(db, by="ann")
    assert quiet.is_quiet
    assert {each.lane for each in quiet.lanes} == before
    assert await enabled(db) == set()
    assert factory.claim() == []
    assert {(each.was_enabled, each.frozen_by) for each in await frozen(db)} == {(True, "ann")}
    with factory.listening() as heard:
        thawed = await thaw(db, by="bob")
    assert heard == ["wake *"]
    assert {each.lane for each in thawed} == before
    assert await enabled(db) == before
    assert await frozen(db) == []
    assert len(factory.claim()) == 1


async def test_frozen_flow_continues_after_the_thaw(db: Database, factory: JobFactory) -> None:
    """Ends, events and sleeps release waiting jobs, and none starts while its lane is frozen."""
    parent = factory.running("page")
    waits = [factory.running("talk") for _ in range(2)]
    for claim, wait in zip(
        waits, [NewWait("nap", "sleep", 0.1), NewWait("go", "event", None, "go", "")], strict=True
    ):
        assert factory.run(handler_waits.begin(claim, wait)).state == "open"
        factory.settle(claim, "wait", result=wait.name)
    factory.conn.execute("select laneway.submit('page', after => %s)", [[parent.job_id]])
    pace = Pace(lambda: factory.settle(parent))
    # Waiting jobs are not waited for: they hold no slot.
    quiet = await freeze(db, by="ann", clock=pace.clock, pause=pace.pause)
    assert (quiet.is_quiet, len(pace.pauses)) == (True, 1)
    factory.conn.execute("select laneway.send_event('go', payload => '1')")
    await asyncio.sleep(0.1)
    due = factory.conn.execute("select due from laneway.peek(array['page', 'talk'])").fetchone()
    assert due == (["page", "talk"],)
    states = "select array_agg(distinct status) from laneway.jobs_view where job_type = 'talk'"
    assert factory.conn.execute(states).fetchone() == (["approved"],)
    assert factory.claim("page", 9) + factory.claim("talk", 9) == []
    await thaw(db, by="ann")
    assert len(factory.claim("page", 9)) == 1
    assert {claim.job_id for claim in factory.claim("talk", 9)} == {one.job_id for one in waits}


async def test_it_waits_until_the_last_job_has_ended(db: Database, factory: JobFactory) -> None:
    first, second = factory.running("ingestion"), factory.running("polarity")
    elsewhere = factory.running("restore")
    pace = Pace(lambda: factory.settle(first), lambda: None, lambda: factory.settle(second))
    seen = await freeze(
        db, ["interactive", "maintenance"], by="me", clock=pace.clock, pause=pace.pause
    )
    assert seen.is_quiet
    assert pace.pauses == pytest.approx([0.2, 0.3, 0.45])
    assert seen.waited_s == pytest.approx(0.95)
    assert [(each.lane, each.running) for each in seen.lanes] == [
        ("interactive", 0), ("maintenance", 0),
    ]  # fmt: skip
    assert "system" in await enabled(db), "a lane that was not named goes on"
    factory.settle(elsewhere)


async def test_pauses_grow_to_a_second_and_end_at_the_deadline(
    db: Database, factory: JobFactory
) -> None:
    factory.running("ingestion")
    pace = Pace()
    seen = await freeze(
        db, ["interactive"], by="me", deadline=30.0, clock=pace.clock, pause=pace.pause
    )
    assert max(pace.pauses) == 1.0
    assert sum(pace.pauses) == pytest.approx(30.0)
    assert not seen.is_quiet


async def test_drain_deadline_names_running_jobs_and_keeps_lanes_drained(
    db: Database, factory: JobFactory
) -> None:
    factory.register(("ingestion",))
    claim = factory.running("ingestion")
    seen = await freeze(db, by="me", deadline=0)
    assert not seen.is_quiet
    assert seen.running == 1
    (lane,) = [each for each in seen.lanes if each.running]
    (job,) = lane.jobs
    assert (lane.lane, job.id, job.job_type, job.worker) == (
        "interactive", claim.job_id, "ingestion", "host:1",
    )  # fmt: skip
    assert await enabled(db) == set()
    shown = to_json(seen)
    assert (shown["is_quiet"], shown["is_thawed"], shown["running"]) == (False, False, 1)
    factory.settle(claim)
    assert (await freeze(db, by="me", deadline=0)).is_quiet


async def test_many_jobs_are_counted_and_some_are_named(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "JOBS_NAMED", 2)
    for _ in range(3):
        factory.running()
    seen = await freeze(db, ["default"], by="me", deadline=0)
    assert (seen.lanes[0].running, len(seen.lanes[0].jobs)) == (3, 2)


async def test_or_thaw_takes_it_back_at_the_deadline(db: Database, factory: JobFactory) -> None:
    before = await enabled(db)
    claim = factory.running()
    seen = await freeze(db, by="me", deadline=0, or_thaw=True)
    assert (seen.is_thawed, seen.is_quiet, seen.running) == (True, False, 1)
    assert await enabled(db) == before
    assert await frozen(db) == []
    factory.settle(claim)
    assert (await freeze(db, by="me", deadline=0, or_thaw=True)).is_quiet
    assert await enabled(db) == set()


async def test_or_thaw_keeps_freeze_of_another_caller(db: Database, factory: JobFactory) -> None:
    before = await enabled(db)
    await freeze(db, ["system", "maintenance"], by="ann")
    await lanes.resume(db, "maintenance", by="eve")
    factory.running()
    assert (await freeze(db, by="bob", deadline=0, or_thaw=True)).is_thawed
    assert await enabled(db) == before - {"system"}
    assert [each.lane for each in await frozen(db)] == ["system"]


async def test_or_thaw_keeps_later_freeze_of_another_caller(
    db: Database, factory: JobFactory
) -> None:
    factory.running("ingestion")

    async def again() -> None:
        await thaw(db, ["interactive"], by="bob")
        await freeze(db, ["interactive"], by="bob", deadline=0)

    pace = Pace(again)
    await freeze(
        db, ["interactive"], by="ann", deadline=1, or_thaw=True, clock=pace.clock, pause=pace.pause
    )
    assert [(each.lane, each.frozen_by) for each in await frozen(db)] == [("interactive", "bob")]
    assert "interactive" not in await enabled(db)


async def test_or_thaw_thaws_when_waiting_is_interrupted(db: Database, factory: JobFactory) -> None:
    before = await enabled(db)
    factory.running()
    waits = asyncio.Event()

    async def forever(seconds: float) -> None:
        waits.set()
        await asyncio.Event().wait()

    for or_thaw, left in ((True, before), (False, set())):
        waits.clear()
        task = asyncio.create_task(freeze(db, by="me", or_thaw=or_thaw, pause=forever))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await enabled(db) == left


async def test_second_freeze_keeps_the_memory_of_the_first(db: Database) -> None:
    before = await enabled(db)
    await freeze(db, ["system"], by="ann")
    again = await freeze(db, by="bob")
    assert "system" in {each.lane for each in again.lanes}
    assert {each.lane: each.frozen_by for each in await frozen(db)}["system"] == "ann"
    await freeze(db, ["system"], by="cleo")
    await thaw(db, by="bob")
    assert await enabled(db) == before


async def test_lane_that_was_drained_before_is_drained_after(db: Database) -> None:
    await lanes.drain(db, "system", by="me")
    await freeze(db, ["system", "interactive"], by="me")
    thawed = await thaw(db, by="me")
    assert thawed == [Thawed("interactive", True, True), Thawed("system", False, False)]


async def test_lane_resumed_by_hand_stays_as_it_is(db: Database) -> None:
    await lanes.drain(db, "system", by="me")
    await freeze(db, ["system"], by="me")
    await lanes.resume(db, "system", by="me")
    assert await thaw(db, by="me") == [Thawed("system", False, True)]
    assert "system" in await enabled(db)


async def test_lane_resumed_by_hand_and_frozen_again_was_enabled(db: Database) -> None:
    await lanes.drain(db, "system", by="me")
    await freeze(db, ["system"], by="me")
    await lanes.resume(db, "system", by="me")
    await freeze(db, ["system"], by="me")
    await thaw(db, by="me")
    assert "system" in await enabled(db)


async def test_lane_resumed_while_we_wait_ends_the_wait(db: Database, factory: JobFactory) -> None:
    factory.running("restore")
    pace = Pace(lambda: lanes.resume(db, "system", by="eve"))
    with pytest.raises(Refused, match="system was resumed"):
        await freeze(db, ["system"], by="me", clock=pace.clock, pause=pace.pause)


async def test_lane_that_is_gone_is_forgotten(db: Database, factory: JobFactory) -> None:
    await lanes.create(db, {"name": "video"}, by="me")
    await freeze(db, ["video"], by="me")
    factory.conn.execute("delete from laneway.worker_lanes where name = 'video'")
    assert await thaw(db, by="me") == []
    assert await frozen(db) == []


async def test_some_frozen_lanes_can_be_thawed(db: Database) -> None:
    await freeze(db, by="me")
    await thaw(db, ["system"], by="me")
    assert await enabled(db) == {"system"}
    with pytest.raises(Refused, match="system is not frozen"):
        await thaw(db, ["interactive", "system"], by="me")
    assert await enabled(db) == {"system"}, "all or nothing"


async def test_both_are_changes_with_a_name_in_the_history(db: Database) -> None:
    await freeze(db, ["system"], by="ann")
    await thaw(db, by="bob")
    changes = await history.history(db, "lane", "system")
    assert [(each.by, each.differences["enabled"]) for each in changes] == [
        ("bob", (False, True)), ("ann", (True, False)),
    ]  # fmt: skip


async def test_invalid_request_changes_nothing(db: Database) -> None:
    before = await enabled(db)
    with pytest.raises(NotFound, match="missing"):
        await freeze(db, ["system", "missing"], by="me")
    for deadline in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="deadline"):
            await freeze(db, by="me", deadline=deadline)
    with pytest.raises(InvalidInput):
        await freeze(db, ["Bad Name"], by="me")
    with pytest.raises(InvalidInput, match="by"):
        await freeze(db, by="")
    assert await enabled(db) == before
    assert await thaw(db, by="me") == []


@pytest.mark.parametrize("or_thaw", [True, False])
async def test_or_thaw_takes_it_back_when_the_wait_is_refused(
    db: Database, factory: JobFactory, or_thaw: bool
) -> None:
    before = await enabled(db)
    factory.running("restore")
    pace = Pace(lambda: lanes.resume(db, "system", by="eve"))
    with pytest.raises(Refused, match="system was resumed"):
        await freeze(db, by="me", or_thaw=or_thaw, clock=pace.clock, pause=pace.pause)
    assert await enabled(db) == (before if or_thaw else {"system"})
    assert bool(await frozen(db)) is not or_thaw


@pytest.mark.parametrize("or_thaw", [True, False])
async def test_or_thaw_takes_it_back_when_the_database_was_away(
    db: Database, factory: JobFactory, or_thaw: bool
) -> None:
    before = await enabled(db)
    factory.running()

    async def cut_off(seconds: float) -> None:
        raise DatabaseUnavailable("gone")

    with pytest.raises(DatabaseUnavailable):
        await freeze(db, by="me", or_thaw=or_thaw, pause=cut_off)
    assert await enabled(db) == (before if or_thaw else set())


async def test_lane_shows_who_froze_it(db: Database) -> None:
    await lanes.drain(db, "maintenance", by="me")
    await freeze(db, ["system", "interactive"], by="ann")
    await lanes.resume(db, "interactive", by="eve")
    seen = {each.lane.name: each for each in await lanes.inspect(db)}
    assert {name: each.frozen_by for name, each in seen.items() if each.frozen_by} == {
        "system": "ann"
    }
    system = seen["system"]
    assert (system.frozen, system.frozen_by, system.lane.enabled) == (True, "ann", False)
    assert not seen["maintenance"].frozen


async def test_text_is_refused_as_list_of_lanes(db: Database) -> None:
    wrong: Any
    for wrong in ("default", 5):
        with pytest.raises(InvalidInput, match="lanes: must be a list of names"):
            await freeze(db, wrong, by="me")
        with pytest.raises(InvalidInput, match="lanes: must be a list of names"):
            await thaw(db, wrong, by="me")
    for wrong in ("10", 10**400, True):
        with pytest.raises(InvalidInput, match="deadline"):
            await freeze(db, by="me", deadline=wrong)
