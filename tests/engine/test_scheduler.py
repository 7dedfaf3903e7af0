"""Laws of the scheduler: one job per slot under any leader; checks decide; none harms another."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from laneway import Context
from laneway.config.settings import Settings
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.schedule import Schedule
from laneway.engine.leader.schedule_checks import ScheduleCheck, make_check
from laneway.engine.leader.scheduler import LONGEST_S, Scheduler
from laneway.errors import ConfigError
from laneway.observability.log_throttle import LogThrottle
from laneway.store import schedules
from laneway.store.database import Database
from tests.support.store_client import PAST_CHECKS
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until

HOUR = timedelta(hours=1)


class Called(Scheduler):
    """A scheduler that knows whether something is due that it may serve."""

    def __init__(
        self, database: Database, holder: UUID, checks: dict[str, ScheduleCheck], *rest: Any
    ) -> None:
        super().__init__(database, LogThrottle(), holder, checks, *rest)
        self.database, self.holder, self.checks = database, holder, checks

    async def is_due(self) -> bool:
        statement = schedules.find_due(self.holder, self.checks.keys())
        return bool((await self.database.run(statement)).due)


class SchedulerHarness:
    """Schedulers of several processes on one database, called by the test."""

    def __init__(self, harness: WorkerHarness, stack: AsyncExitStack) -> None:
        self.harness = harness
        self._stack = stack
        self.submitted: list[set[str]] = []
        # Half an hour away, so that no slot comes round while a test runs.
        self.minute = (datetime.now(UTC).minute + 30) % 60

    def scheduler(self, *checks: ScheduleCheck, holder: UUID | None = None) -> Called:
        settings = Settings.load(database_url=self.harness.dsn)
        database = Database(self.harness.dsn, settings, role="worker", size=1)
        made = Called(
            database,
            holder or uuid4(),
            {check.name: check for check in checks},
            SimpleNamespace(level=3),
            self.submitted.append,
        )
        self._stack.push_async_callback(database.close)
        self._stack.push_async_callback(made.cancel)
        return made

    def leader(self) -> Called:
        """A scheduler whose process leads."""
        holder = uuid4()
        self.harness.do("delete from laneway.leader")
        self.harness.one("select laneway.take_leadership(%s, 600)", holder)
        return self.scheduler(holder=holder)

    async def add(self, name: str = "nightly", late: timedelta | None = None, **more: Any) -> None:
        """A schedule whose next slot was so long ago."""
        given = {"name": name, "job_type": "t", "cron": f"{self.minute} * * * *", **more}
        await self.harness.lw.database.run(
            schedules.create(Schedule.of(given), "me", DEFAULT_LIMITS)
        )
        if late is not None:
            self.late(name, late)

    def late(self, name: str, by: timedelta) -> None:
        """Sets it back by so much from its last slot."""
        last = datetime.now(UTC).replace(minute=self.minute, second=0, microsecond=0)
        while last > datetime.now(UTC):
            last -= HOUR
        self.harness.do(
            "update laneway.schedule_state set next_at = %s where name = %s", last - by, name
        )

    def slots(self) -> list[tuple[Any, ...]]:
        """Schedule and outcome of every slot, oldest first."""
        return self.harness.rows(
            "select schedule, outcome from laneway.schedule_slots order by slot, schedule"
        )

    def notes(self) -> list[str | None]:
        return [row[0] for row in self.harness.rows("select note from laneway.schedule_slots")]

    @property
    def jobs(self) -> int:
        return int(self.harness.one("select count(*) from laneway.jobs"))

    def next_at(self, name: str = "nightly") -> datetime | None:
        found = self.harness.one("select next_at from laneway.schedule_state where name = %s", name)
        assert found is None or isinstance(found, datetime)
        return found


@pytest.fixture
async def schedulers(harness: WorkerHarness) -> AsyncIterator[SchedulerHarness]:
    async with AsyncExitStack() as stack:
        yield SchedulerHarness(harness, stack)


async def settle(scheduler: Called) -> float | None:
    """Run rounds until nothing is left to do; return the last result."""
    for _ in range(200):
        delay = await scheduler.run_once()
        await scheduler.checked()
        if delay != 0 and not await scheduler.is_due():
            return delay
    raise AssertionError("it never comes to rest")


# -- what is fired ------------------------------------------------------------------------------


async def test_new_schedule_is_planned_for_its_next_slot_and_fires_nothing(
    schedulers: SchedulerHarness,
) -> None:
    await schedulers.add(cron="0 * * * *", timezone="Asia/Kolkata")
    await settle(schedulers.leader())
    found = schedulers.next_at()
    assert found is not None
    assert timedelta(0) < found - datetime.now(UTC) <= HOUR
    assert found.minute == 30, "a whole hour in India"
    assert schedulers.slots() == []


@pytest.mark.parametrize(
    "settings,outcomes",
    [
        ({"missed": "coalesce"}, ["submitted"]),
        ({"missed": "catch_up", "catch_up": 3}, ["missed", *["submitted"] * 3]),
        ({"missed": "catch_up"}, ["submitted"] * 8),
    ],
)
async def test_missed_slots_follow_policy_of_schedule(
    schedulers: SchedulerHarness, settings: dict[str, Any], outcomes: list[str]
) -> None:
    await schedulers.add(late=7 * HOUR, **settings)
    await settle(schedulers.leader())
    assert schedulers.slots() == [("nightly", outcome) for outcome in outcomes]
    assert schedulers.jobs == outcomes.count("submitted")
    assert schedulers.submitted
    found = schedulers.next_at()
    assert found is not None
    assert found > datetime.now(UTC) - timedelta(minutes=1)


async def test_skip_records_missed_slots_and_fires_none(
    schedulers: SchedulerHarness,
) -> None:
    await schedulers.add(missed="skip", late=7 * HOUR)
    await settle(schedulers.leader())
    assert schedulers.slots() == [("nightly", "missed")]
    assert str(schedulers.notes()[0]).startswith("8 slots missed since ")
    assert schedulers.jobs == 0


# -- after the clock was set back ---------------------------------------------------------------


@pytest.mark.parametrize("had_its_turn", [False, True])
async def test_plan_from_a_clock_that_was_set_back_is_mended(
    schedulers: SchedulerHarness, had_its_turn: bool
) -> None:
    await schedulers.add()
    await settle(schedulers.leader())
    planned = schedulers.next_at()
    assert planned is not None
    # As by a leader that saw a clock a day ahead, where one slot stood for those before it.
    ahead = planned + timedelta(days=1)
    schedulers.harness.do(
        "update laneway.schedule_state set next_at = %s, last_at = %s",
        ahead,
        ahead - HOUR if had_its_turn else None,
    )
    leader = schedulers.leader()
    leader.elected()
    await settle(leader)
    assert schedulers.next_at() == planned


async def test_mended_plan_is_looked_at_at_once(schedulers: SchedulerHarness) -> None:
    """Not half a minute later: its slot may come sooner."""
    await schedulers.add(cron="* * * * * *")
    await settle(schedulers.leader())
    ahead = datetime.now(UTC) + timedelta(days=1)
    schedulers.harness.do("update laneway.schedule_state set next_at = %s", ahead)
    leader = schedulers.leader()
    leader.elected()
    assert await leader.run_once() == 0


async def test_changed_schedule_waits_for_no_clock_that_was_ahead(
    schedulers: SchedulerHarness,
) -> None:
    await schedulers.add()
    await settle(schedulers.leader())
    planned = schedulers.next_at()
    ahead = datetime.now(UTC) + timedelta(days=1)
    schedulers.harness.do("update laneway.schedule_state set next_at = null, last_at = %s", ahead)
    await settle(schedulers.leader())
    assert schedulers.next_at() == planned


async def reached_again(
    schedulers: SchedulerHarness, outcome: str | None, **settings: Any
) -> datetime:
    """Sets the schedule to a slot of just now that a clock ahead has passed before."""
    slot = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=2)
    await schedulers.add(cron=f"{slot.second} {slot.minute} * * * *", **settings)
    schedulers.harness.do(
        "update laneway.schedule_state set next_at = %s, last_at = %s",
        slot,
        slot + timedelta(days=1),
    )
    if outcome is not None:
        schedulers.harness.do(
            "insert into laneway.schedule_slots (schedule, slot, manual, outcome, note)"
            " values ('nightly', %s, false, %s, '9 slots missed')",
            slot,
            outcome,
        )
    await settle(schedulers.leader())
    return slot


async def test_slot_that_another_stood_for_fires_when_it_comes(
    schedulers: SchedulerHarness,
) -> None:
    await reached_again(schedulers, None)
    assert schedulers.slots() == [("nightly", "submitted")]
    assert schedulers.jobs == 1


async def test_slot_noted_as_missed_fires_when_it_comes(schedulers: SchedulerHarness) -> None:
    await reached_again(schedulers, "missed", missed="skip")
    assert schedulers.slots() == [("nightly", "submitted")]
    assert schedulers.notes() == ["before: 9 slots missed"]
    assert schedulers.jobs == 1


@pytest.mark.parametrize("outcome", ["submitted", "skipped", "failed"])
async def test_slot_that_had_its_turn_does_not_fire_again(
    schedulers: SchedulerHarness, outcome: str
) -> None:
    slot = await reached_again(schedulers, outcome)
    assert schedulers.slots() == [("nightly", outcome)]
    assert schedulers.jobs == 0
    assert schedulers.next_at() == slot + HOUR


@pytest.mark.parametrize("missed", ["skip", "coalesce", "catch_up"])
async def test_slots_passed_before_are_not_made_up_again(
    schedulers: SchedulerHarness, missed: str
) -> None:
    """A clock that is a day behind for a while makes nothing of that day due."""
    await schedulers.add(late=timedelta(days=1), missed=missed)
    schedulers.harness.do("update laneway.schedule_state set last_at = next_at + interval '1 day'")
    await settle(schedulers.leader())
    assert schedulers.slots() == []
    found = schedulers.next_at()
    assert found is not None
    assert timedelta(0) < found - datetime.now(UTC) <= HOUR


async def test_slots_after_the_last_turn_are_made_up(schedulers: SchedulerHarness) -> None:
    await schedulers.add(late=timedelta(days=1), missed="catch_up")
    schedulers.harness.do(
        "update laneway.schedule_state set last_at = next_at + interval '22 hours'"
    )
    await settle(schedulers.leader())
    assert schedulers.slots() == [("nightly", "submitted")] * 2


# -- who fires ----------------------------------------------------------------------------------


async def test_process_that_does_not_lead_fires_nothing_and_looks_rarely(
    schedulers: SchedulerHarness,
) -> None:
    await schedulers.add(late=HOUR)
    schedulers.leader()
    assert await schedulers.scheduler().run_once() == LONGEST_S
    assert schedulers.slots() == []


async def test_leaders_that_follow_each_other_fire_each_slot_once(
    schedulers: SchedulerHarness,
) -> None:
    """Each of them has read what is due before the next one leads."""
    for i in range(5):
        await schedulers.add(f"s{i}", late=3 * HOUR, missed="catch_up")
    leaders = [schedulers.leader() for _ in range(6)]
    await asyncio.gather(*(each.run_once() for each in leaders))
    await settle(leaders[-1])
    assert len(schedulers.slots()) == 20
    assert schedulers.jobs == 20


async def test_many_processes_that_all_hold_the_lead_fire_each_slot_once(
    schedulers: SchedulerHarness,
) -> None:
    """As if fencing were not there: the key of the slots is enough."""
    for i in range(5):
        await schedulers.add(f"s{i}", late=3 * HOUR, missed="catch_up")
    holder = schedulers.leader().holder
    crowd = [schedulers.scheduler(holder=holder) for _ in range(8)]
    await asyncio.gather(*(settle(each) for each in crowd))
    assert len(schedulers.slots()) == 20
    assert schedulers.jobs == 20


async def test_schedule_with_invalid_cron_is_disabled_and_others_continue(
    schedulers: SchedulerHarness,
) -> None:
    await schedulers.add("a", late=HOUR)
    await schedulers.add("b", late=2 * HOUR)
    schedulers.harness.do("update laneway.schedules set cron = '99 * * * *' where name = 'a'")
    await settle(schedulers.leader())
    assert schedulers.slots() == [("b", "submitted")]
    assert schedulers.harness.one(
        "select enabled, error from laneway.schedules where name = 'a'"
    ) == (
        False,
        "cron: its minute field is not valid: '99'",
    )


async def test_job_that_cannot_be_submitted_fails_its_slot_only(
    schedulers: SchedulerHarness,
) -> None:
    await schedulers.add("a", late=HOUR)
    await schedulers.add("b", late=HOUR)
    schedulers.harness.do(
        PAST_CHECKS.format("update laneway.schedules set workspace = '' where name = 'a'")
    )
    await settle(schedulers.leader())
    assert sorted(schedulers.slots()) == [("a", "failed"), ("b", "submitted")]
    assert schedulers.harness.one("select enabled from laneway.schedules where name = 'a'")


async def test_trouble_with_one_schedule_keeps_no_other_from_its_turn(
    schedulers: SchedulerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    await schedulers.add("a", late=2 * HOUR)
    await schedulers.add("b", late=HOUR)
    schedulers.harness.do(
        "create function fail() returns trigger language plpgsql as $$ begin"
        " raise exception 'no' using errcode = 'XX000'; end $$;"
        " create trigger fail before insert on laneway.schedule_slots for each row"
        " when (new.schedule = 'a') execute function fail()"
    )
    assert await schedulers.leader().run_once() not in (0, None)
    assert schedulers.slots() == [("b", "submitted")]
    assert "schedule a" in caplog.text


# -- checks -------------------------------------------------------------------------------------


def check(fn: Callable[..., Any], **options: Any) -> ScheduleCheck:
    return make_check("is_full", fn, **options)


async def yes() -> bool:
    return True


def by_resources(resources: Any) -> bool:
    return bool(resources.level == 3)


async def no() -> bool:
    return False


@pytest.mark.parametrize(
    "fn,outcome",
    [(yes, "submitted"), (by_resources, "submitted"), (no, "skipped"), (lambda: False, "skipped")],
)
async def test_check_decides_and_skip_is_not_failure(
    schedulers: SchedulerHarness, fn: Callable[..., Any], outcome: str
) -> None:
    await schedulers.add(late=HOUR, check_name="is_full")
    await settle(schedulers.scheduler(check(fn)))
    assert schedulers.slots() == [("nightly", outcome)]
    assert schedulers.jobs == (outcome == "submitted")
    assert schedulers.harness.one(
        "select check_failures, checking_by from laneway.schedule_state"
    ) == (
        0,
        None,
    )


async def test_check_that_no_worker_has_waits(schedulers: SchedulerHarness) -> None:
    await schedulers.add(late=HOUR, check_name="is_full")
    await settle(schedulers.leader())
    await settle(schedulers.scheduler(make_check("other", yes)))
    assert schedulers.slots() == []


async def test_each_slot_caught_up_asks_its_own_check(schedulers: SchedulerHarness) -> None:
    answers = iter([True, False, True])
    await schedulers.add(late=2 * HOUR, check_name="is_full", missed="catch_up", catch_up=3)
    await settle(schedulers.scheduler(check(lambda: next(answers))))
    assert [outcome for _, outcome in schedulers.slots()] == ["submitted", "skipped", "submitted"]


async def raises() -> bool:
    raise ValueError("it\x00broke")


def leaves() -> bool:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "fn,text",
    [
        (raises, "ValueError: it\\u0000broke"),
        (leaves, "RuntimeError: SystemExit: 3"),
        (lambda: None, "TypeError: returned NoneType, not True or False"),
    ],
)
async def test_five_failures_in_a_row_disable_with_the_reason(
    schedulers: SchedulerHarness, fn: Callable[..., Any], text: str
) -> None:
    await schedulers.add(late=8 * HOUR, check_name="is_full", missed="catch_up")
    await settle(schedulers.scheduler(check(fn)))
    assert schedulers.slots() == [("nightly", "failed")] * 5
    assert set(schedulers.notes()) == {f"check is_full: {text}"}
    assert schedulers.harness.one("select enabled, error, updated_by from laneway.schedules") == (
        False,
        f"the check is_full failed 5 times in a row, the last time with {text}",
        "laneway",
    )
    assert schedulers.jobs == 0


async def test_success_restarts_the_count(schedulers: SchedulerHarness) -> None:
    answers = iter([1, 1, 1, 1, True, 1, 1, 1, 1])
    await schedulers.add(late=8 * HOUR, check_name="is_full", missed="catch_up")
    await settle(schedulers.scheduler(check(lambda: next(answers))))
    assert [outcome for _, outcome in schedulers.slots()].count("failed") == 8
    assert schedulers.harness.one("select enabled from laneway.schedules")


@pytest.mark.parametrize("is_async", [True, False])
async def test_check_that_does_not_answer_fails(
    schedulers: SchedulerHarness, is_async: bool
) -> None:
    stuck = threading.Event()

    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    await schedulers.add(late=HOUR * 0, check_name="is_full")
    fn: Callable[..., Any] = hangs if is_async else lambda: stuck.wait(60)
    await settle(schedulers.scheduler(check(fn, timeout=0.05)))
    stuck.set()
    assert schedulers.notes() == ["check is_full: TimeoutError: no answer within 0.05 s"]
    assert schedulers.jobs == 0


async def test_slow_check_keeps_no_other_schedule_waiting(schedulers: SchedulerHarness) -> None:
    gate = asyncio.Event()

    async def slow() -> bool:
        await gate.wait()
        return True

    await schedulers.add("slow", late=2 * HOUR, check_name="is_full")
    await schedulers.add("quick", late=HOUR, check_name="other")
    scheduler = schedulers.scheduler(check(slow), make_check("other", yes))
    await scheduler.run_once()
    await wait_until(lambda: schedulers.slots() == [("quick", "submitted")])
    gate.set()
    await settle(scheduler)
    assert schedulers.jobs == 2


async def test_one_process_runs_a_check_at_a_time(schedulers: SchedulerHarness) -> None:
    running, most, asked = 0, 0, 0

    async def counted() -> bool:
        nonlocal running, most, asked
        running, asked = running + 1, asked + 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return True

    await schedulers.add(late=4 * HOUR, check_name="is_full", missed="catch_up")
    crowd = [schedulers.scheduler(check(counted)) for _ in range(6)]
    while await crowd[0].is_due():
        await asyncio.gather(*(each.run_once() for each in crowd))
        await asyncio.gather(*(each.checked() for each in crowd))
    assert (most, asked) == (1, 5)
    assert schedulers.jobs == 5


async def test_checker_that_crashed_is_replaced_and_its_late_answer_void(
    schedulers: SchedulerHarness,
) -> None:
    gate = asyncio.Event()

    async def frozen() -> bool:
        await gate.wait()
        return True

    await schedulers.add(late=HOUR, check_name="is_full")
    first = schedulers.scheduler(check(frozen))
    await first.run_once()
    await wait_until(
        lambda: schedulers.harness.one("select checking_by from laneway.schedule_state")
    )
    second = schedulers.scheduler(check(no))
    await settle(second)
    assert schedulers.slots() == []
    schedulers.harness.do("update laneway.schedule_state set checking_until = clock_timestamp()")
    await settle(second)
    gate.set()
    await first.checked()
    assert schedulers.slots() == [("nightly", "skipped")]
    assert schedulers.jobs == 0


async def test_stopping_process_releases_its_checks(schedulers: SchedulerHarness) -> None:
    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    await schedulers.add(late=HOUR, check_name="is_full")
    first = schedulers.scheduler(check(hangs))
    await first.run_once()
    await wait_until(
        lambda: schedulers.harness.one("select checking_by from laneway.schedule_state")
    )
    await first.resign()
    await settle(schedulers.scheduler(check(yes)))
    assert schedulers.slots() == [("nightly", "submitted")]


# -- in a worker --------------------------------------------------------------------------------


async def test_worker_creates_declared_objects_and_overwrites_nothing(
    harness: WorkerHarness,
) -> None:
    @harness.lw.schedule("nightly", cron="0 3 * * *", timezone="Europe/Berlin", payload={"days": 1})
    @harness.lw.handler("cleanup")
    async def cleanup(ctx: Context, days: int) -> None: ...

    harness.lw.schedule("weekly", "cleanup", cron="@weekly", check="is_full", payload={"days": 7})
    await harness.start_worker()
    row = (
        "select job_type, cron, timezone, payload, check_name from laneway.schedules order by name"
    )
    assert harness.rows(row) == [
        ("cleanup", "0 3 * * *", "Europe/Berlin", {"days": 1}, None),
        ("cleanup", "@weekly", "UTC", {"days": 7}, "is_full"),
    ]
    await wait_until(lambda: harness.one("select count(next_at) from laneway.schedule_state") == 1)
    harness.do("update laneway.schedules set cron = '5 5 * * *' where name = 'nightly'")
    await harness.start_worker()
    assert harness.rows("select cron from laneway.schedules where name = 'nightly'") == [
        ("5 5 * * *",)
    ]


async def test_declaration_that_breaks_a_rule_is_refused(harness: WorkerHarness) -> None:
    with pytest.raises(ConfigError, match="schedule 'x': cron: "):
        harness.lw.schedule("x", "t", cron="99 * * * *")
    with pytest.raises(ConfigError, match=r"check 'x': .*must take no argument"):
        harness.lw.check("x")(lambda a, b: True)
    harness.lw.schedule("x", "t", cron="@daily")
    with pytest.raises(ConfigError, match="already registered"):
        harness.lw.schedule("x", "t", cron="@daily")

    @harness.lw.handler("t")
    async def t(ctx: Context, days: int) -> None: ...

    with pytest.raises(ConfigError, match=r"schedule 'x': .*days"):
        await harness.start_worker()


async def test_slot_is_served_by_a_worker_from_cron_to_completion(
    either_harness: WorkerHarness,
) -> None:
    harness, level = either_harness, 0

    @harness.lw.schedule("often", cron="* * * * * *", missed="catch_up", catch_up=1000, tags=["x"])
    @harness.lw.handler("count")
    async def count(ctx: Context) -> None: ...

    @harness.lw.check("is_full")
    def is_full() -> bool:
        nonlocal level
        level += 1
        return level % 2 == 0

    harness.lw.schedule("at_times", "count", cron="* * * * * *", check="is_full")
    await harness.start_worker()
    await harness.start_worker()
    await wait_until(lambda: harness.count("completed") >= 4)
    await wait_until(
        lambda: harness.rows("select 1 from laneway.schedule_slots where outcome = 'skipped'")
    )
    ran = harness.rows("select distinct created_by, tags from laneway.jobs where tags is not null")
    assert ran == [("schedule:often", ["x"])]
    gaps = harness.one(
        "select count(*) from (select slot - lag(slot) over (order by slot) as gap"
        " from laneway.schedule_slots where schedule = 'often') g where gap > interval '1 s'"
    )
    assert gaps == 0
    twice = harness.rows(
        "select schedule, job_id from laneway.schedule_slots where job_id is not null"
        " group by 1, 2 having count(*) > 1"
    )
    assert twice == []


async def test_change_is_noticed_by_a_sleeping_worker(harness: WorkerHarness) -> None:
    harness.lane("default", poll_interval_ms=100)

    @harness.lw.handler("count")
    async def count(ctx: Context) -> None: ...

    await harness.start_worker()
    await wait_until(lambda: harness.rows("select 1 from laneway.leader"))
    await harness.lw.schedules.put("often", job_type="count", cron="* * * * * *")
    await wait_until(lambda: harness.count("completed") >= 1)
    await harness.lw.schedules.disable("often")
    ran = await harness.lw.schedules.run_now("often")
    assert ran.job_id is not None
    await wait_until(lambda: harness.status(ran.job_id) == "completed")  # type: ignore[arg-type]


async def test_run_now_with_the_check_is_answered_by_a_worker(harness: WorkerHarness) -> None:
    @harness.lw.check("is_full")
    async def is_full() -> bool:
        return False

    await harness.start_worker()
    await harness.lw.schedules.put("x", job_type="t", cron="@yearly", check_name="is_full")
    ran = await harness.lw.schedules.run_now("x", check=True, by="ann")
    assert ran.answer == "asked"
    await wait_until(lambda: harness.rows("select 1 from laneway.schedule_slots"))
    (slot,) = await harness.lw.schedules.slots("x")
    assert (slot.slot, slot.manual, slot.outcome) == (ran.slot, True, "skipped")


async def test_idle_worker_asks_about_schedules_at_most_every_ten_seconds(
    schedulers: SchedulerHarness,
) -> None:
    """Alone, as leader, and beside schedules that are far away."""
    assert await schedulers.scheduler().run_once() == LONGEST_S
    await schedulers.add(cron="0 0 1 1 *")
    leader = schedulers.leader()
    assert await settle(leader) == LONGEST_S
    assert LONGEST_S >= 10


async def test_next_leader_continues_where_a_killed_one_stopped(
    dsn: str, harness: WorkerHarness
) -> None:
    await harness.lw.schedules.put(
        "often", job_type="quick", cron="* * * * * *", missed="catch_up", catch_up=1000
    )
    slots = "select count(*) from laneway.schedule_slots"
    with WorkerCommand(dsn) as one, WorkerCommand(dsn) as two:
        leader_pid = (
            "select w.pid from laneway.workers w join laneway.leader l on l.holder = w.id"
            " where w.pid = any(%s)"
        )
        pids = [one.process.pid, two.process.pid]
        await wait_until(lambda: harness.one(slots) >= 1 and harness.rows(leader_pid, pids))
        leads = harness.one(leader_pid, pids)
        killed = one if one.process.pid == leads else two
        before = harness.one(slots)
        killed.process.send_signal(signal.SIGKILL)
        await wait_until(lambda: harness.one(slots) >= before + 3)
    gaps = harness.one(
        "select count(*) from (select slot - lag(slot) over (order by slot) as gap"
        " from laneway.schedule_slots) g where gap > interval '1 s'"
    )
    assert gaps == 0
    jobs = harness.one("select count(*), count(distinct id) from laneway.jobs")
    assert jobs == (harness.one(slots), harness.one(slots))
