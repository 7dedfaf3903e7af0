"""C31: the database's clock jumps forward and back by a day while schedules are due.

A slot fires once: when it is first reached, or by its policy if the clock jumped over it. A clock
that was ahead for a while must not suppress slots after it is corrected.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.crash.clusters import HASTY, SETTINGS
from tests.crash.fake_clock import FakeClock
from tests.crash.row_run import RowRun, Stuck, wait_until

ROUNDS = 3
WORKERS = 2
GAP_S = 3.0
PATIENCE_S = 45.0
FIRST_DAY = datetime(2027, 6, 1, tzinfo=UTC)
DAY, HALF_HOUR = timedelta(days=1), timedelta(minutes=30)
CRONS = {"night": "30 2 * * *", "half": "*/30 * * * *"}
POLICIES: dict[str, dict[str, Any]] = {
    "coalesce": {"missed": "coalesce"},
    "skip": {"missed": "skip"},
    "catch_up": {"missed": "catch_up", "catch_up": 1000},
}
ALL = tuple(f"{kind}_{policy}" for kind in CRONS for policy in POLICIES)
HALVES = tuple(name for name in ALL if name.startswith("half"))


async def inject(run: RowRun) -> None:
    if run.app == "tests.crash.app:lw":
        run.app = "tests.crash.policy_app:lw"
    run.worker_settings |= {"LANEWAY_LEADER_TTL": "2.5", "LANEWAY_WATCHDOG_INTERVAL": "1.5"}
    run.sink.chmod(0o755)
    clock = FakeClock(run.sink)
    clock.set(FIRST_DAY)
    run.conn.close()
    run.postgres.stop()
    try:
        with clock.serving(run.postgres.data_dir, {**SETTINGS, **HASTY}):
            try:
                await Jumps(run, clock).inject()
            finally:
                await run.stop_workers()
                run.conn.close()
    finally:
        run.postgres.start()


class Jumps:
    """Moves the clock and waits for the slots that must fire."""

    def __init__(self, run: RowRun, clock: FakeClock) -> None:
        self._run = run
        self._clock = clock
        self._jumped = time.monotonic()
        self._jumped_to = clock.now
        self._wanted: set[tuple[str, datetime]] = set()

    async def inject(self) -> None:
        run = self._run
        workers = [run.start_worker() for _ in range(WORKERS)]
        await run.ready(*workers)
        for number in range(run.count(ROUNDS)):
            day = FIRST_DAY + timedelta(days=20 * number + 1)
            self._set(day + timedelta(hours=2, minutes=20))
            async with run.client() as client:
                for kind, cron in CRONS.items():
                    for policy, settings in POLICIES.items():
                        name = f"{kind}_{policy}"
                        await client.schedules.put(name, job_type="tick", cron=cron, **settings)
                await self._planned()
                await self._around(day)
                self._judge()
                for name in ALL:
                    await client.schedules.delete(name)
            self._wanted.clear()

    async def _around(self, day: datetime) -> None:
        """Make every jump around the slots of one night and the next."""
        night = day + timedelta(hours=2, minutes=30)
        # The clock was slow, and is corrected just before the slot.
        self._set(night - timedelta(seconds=2))
        await self._come(ALL, night)
        # A day ahead: the next night fires at once, slots in between by policy.
        await self._rest()
        self._jump(DAY)
        await self._come(ALL, night + DAY)
        await self._come(["half_catch_up"], *_halves(night + HALF_HOUR, night + DAY))
        # Corrected: the next slots have not fired, except those that caught up.
        await self._rest()
        self._jump(-DAY)
        self._set(night + HALF_HOUR - timedelta(seconds=2))
        await self._come(HALVES, night + HALF_HOUR)
        # A day behind for a while: no slot of that day fires again.
        self._jump(-DAY)
        await self._noticed()
        await self._rest()
        self._jump(DAY)
        self._set(night + 2 * HALF_HOUR - timedelta(seconds=2))
        await self._come(HALVES, night + 2 * HALF_HOUR)
        # The night that fired while the clock was ahead does not fire again.
        self._set(night + DAY - timedelta(seconds=2))
        await wait_until(
            lambda: self._clock.now > night + DAY + timedelta(seconds=GAP_S), 60, "it passes"
        )
        self._set(night + DAY + HALF_HOUR - timedelta(seconds=2))
        await self._come(HALVES, night + DAY + HALF_HOUR)
        # Ahead past a night that the policy skips, and back before that night.
        before = night + 2 * DAY - timedelta(hours=1)
        self._set(before)
        await self._come(["half_coalesce", "half_skip"], before)
        await self._come(["half_catch_up"], *_halves(night + DAY + 2 * HALF_HOUR, before))
        await self._rest()
        self._jump(DAY)
        await self._come(["night_coalesce", "night_catch_up"], night + 2 * DAY)
        await self._come(HALVES, before + DAY)
        await self._come(["half_catch_up"], *_halves(before + HALF_HOUR, before + DAY))
        self._jump(-DAY)
        self._set(night + 2 * DAY - timedelta(seconds=2))
        await self._come(ALL, night + 2 * DAY)

    def _jump(self, by: timedelta) -> None:
        self._set(self._clock.now + by)
        self._run.fault(kind="jump", by=by.total_seconds())

    def _set(self, to: datetime) -> None:
        self._clock.set(to)
        self._jumped, self._jumped_to = time.monotonic(), self._clock.now

    async def _rest(self) -> None:
        """Let the leader become idle, and continue at a random moment between two polls."""
        await asyncio.sleep(self._run.random.uniform(0.5, 2.5))

    async def _planned(self) -> None:
        asked = "select count(*) = %s from laneway.schedule_state where next_at is not null"
        await wait_until(
            lambda: bool(self._run.ask(asked, len(ALL))), PATIENCE_S, "all are planned"
        )

    async def _noticed(self) -> None:
        """Wait until the leader has read the current clock."""
        asked = (
            "select held_until between clock_timestamp() and clock_timestamp() + interval '5 s'"
            " from laneway.leader"
        )
        await wait_until(lambda: bool(self._run.ask(asked)), PATIENCE_S, "the leader leads on")
        await asyncio.sleep(GAP_S)

    async def _come(self, names: Iterable[str], *slots: datetime) -> None:
        """Wait until these slots have fired, and record their delays."""
        due = {(name, slot) for name in names for slot in slots}
        self._wanted |= due
        while missing := due - self._submitted():
            late = time.monotonic() - max(self._could(slot) for _, slot in missing)
            if late > PATIENCE_S:
                names = sorted({name for name, _ in missing})
                raise Stuck(f"no turn of {names} at {sorted({s for _, s in missing})}")
            await asyncio.sleep(0.02)
        late = time.monotonic() - max(self._could(slot) for _, slot in due)
        self._run.history.add("turn", late=late, slot=f"{max(slots):%d %H:%M}")

    def _could(self, slot: datetime) -> float:
        """The time when the slot was due: at the jump, or when the clock reached it."""
        ahead = (slot - self._jumped_to).total_seconds()
        return self._jumped + max(0.0, ahead)

    def _submitted(self) -> set[tuple[str, datetime]]:
        return set(
            self._run.conn.execute(
                "select schedule, slot from laneway.schedule_slots where outcome = 'submitted'"
            ).fetchall()
        )

    def _judge(self) -> None:
        run = self._run
        fired = self._submitted()
        # From the recorded submits: retention may have deleted jobs of the previous round.
        jobs = run.ask(
            "select count(*) from crash.seen"
            " where what = 'born' and more ->> 'created_by' like 'schedule:%%'"
        )
        total = sum(event.more["count"] for event in run.history.of("fired")) + len(fired)
        run.history.add("fired", count=len(fired))
        run.result.must("slots and their jobs", f"{total}, {jobs}", held=total == jobs > 0)
        extra = sorted(f"{name} {slot:%d %H:%M}" for name, slot in fired - self._wanted)
        run.result.must("slots that should not have come", extra, held=not extra)


def _halves(first: datetime, last: datetime) -> list[datetime]:
    return [first + n * HALF_HOUR for n in range(int((last - first) / HALF_HOUR) + 1)]


def check(run: RowRun) -> None:
    turns = run.history.of("turn")
    worst = max((turn.more["late"] for turn in turns), default=99.0)
    seen = ", ".join(f"{turn.more['slot']} {turn.more['late']:.2f}" for turn in turns)
    run.result.figures["clock_jump_gap_s"] = round(worst, 2)
    run.result.must(
        f"turns ≤ {GAP_S:g} s after the clock's jump or their slot",
        f"{worst:.2f} s ({seen})",
        held=worst <= GAP_S,
    )
    jumps = run.result.faults
    run.result.must("jumps by a day", jumps, held=jumps == 6 * run.count(ROUNDS))
    run.result.jobs = run.ask("select count(*) from laneway.jobs")
