"""C29: schedules are due every second while leaders freeze or die and PostgreSQL is down.

Workers have production intervals. Measured: the time from a take-over, or from PostgreSQL's
return, to the first run of a schedule; and from the freeze or kill to the take-over.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

from laneway.testing import faults
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import RowRun, wait_until
from tests.crash.rows.c06_schedule import EACH_SECOND, find_leader, missing_slots

FAULTS = 12
WORKERS = 3
GAP_S = 3.0
LEADER_TTL_S = 2.5
TAKE_OVER_S = 3.0
KINDS = ("freeze", "away", "kill")
AWAY_S = (2.0, 8.0)
SCHEDULES: dict[str, dict[str, Any]] = {
    "every": {"missed": "catch_up", "catch_up": 1000},
    "newest": {"missed": "coalesce"},
}
APP = "tests.crash.policy_app:lw"


async def inject(run: RowRun) -> None:
    if run.app == "tests.crash.app:lw":
        run.app = APP
    run.worker_settings |= {
        "LANEWAY_LEADER_TTL": str(LEADER_TTL_S),
        "LANEWAY_WATCHDOG_INTERVAL": "1.5",
    }
    workers = [run.start_worker() for _ in range(WORKERS)]
    await run.ready(*workers)
    async with run.client() as client:
        for name, settings in SCHEDULES.items():
            await client.schedules.put(name, job_type="tick", cron=EACH_SECOND, **settings)
        await wait_until(lambda: _slots(run) >= len(SCHEDULES), 40, "every schedule comes round")
        kinds = itertools.cycle(KINDS)
        for number in range(run.count(FAULTS, len(KINDS))):
            await _break(run, workers, next(kinds), AWAY_S[number % len(AWAY_S)])
            so_far = _slots(run)
            await wait_until(lambda n=so_far: _slots(run) >= n + 6, 40, "slots go on")  # type: ignore[misc]
        now = run.ask("select clock_timestamp()")
        await wait_until(
            lambda: (
                not run.ask(
                    "select exists (select from laneway.schedule_state where next_at <= %s)", now
                )
            ),
            20,
            "every slot has had its turn",
        )
        for name in SCHEDULES:
            await client.schedules.disable(name)
        run.history.add("stopped", at=now.timestamp())
        await run.drain_all(20)


def _slots(run: RowRun) -> int:
    return int(run.ask("select count(*) from laneway.schedule_slots"))


async def _break(run: RowRun, workers: list[WorkerProcess], kind: str, away_s: float) -> None:
    await wait_until(
        lambda: all(run.is_at_work(worker) for worker in workers), 30, "all workers work"
    )
    if kind == "away":
        await _away(run, away_s)
        return
    leader = await find_leader(run, workers)
    epoch = run.ask("select epoch from laneway.leader")
    asleep = leader.tree()
    if kind == "freeze":
        faults.pause(*asleep)
        at = run.clock()
        run.fault(kind=kind)
    else:
        at = run.kill(leader)
    try:
        first = await _first_run(run, at, epoch)
    finally:
        if kind == "freeze":
            faults.resume(*asleep)
        else:
            leader.process.wait()
            workers[workers.index(leader)] = run.start_worker()
    led = run.ask(
        "select min(extract(epoch from at))::float8 from crash.seen"
        " where what = 'leader' and at > to_timestamp(%s)",
        at,
    )
    run.history.add("turn", kind=kind, gap=first - led, take_over=led - at)


async def _away(run: RowRun, away_s: float) -> None:
    """Stop PostgreSQL, and start it after a while."""
    run.conn.close()
    await asyncio.to_thread(run.postgres.stop, "immediate")
    run.fault(kind="away")
    await asyncio.sleep(away_s)
    await asyncio.to_thread(run.postgres.start)
    run.last_fault = time.monotonic()
    at = run.clock()
    first = await _first_run(run, at, 0)
    run.history.add("turn", kind="away", gap=first - at, take_over=0.0)


async def _first_run(run: RowRun, at: float, epoch: int) -> float:
    """The time of the first run after `at`, by a later leader than `epoch`."""
    asked = (
        "select min(extract(epoch from at))::float8 from crash.seen where what = 'fire'"
        " and at > to_timestamp(%s) and (more ->> 'epoch')::bigint > %s"
        " and more ->> 'answer' = 'fired'"
    )
    await wait_until(lambda: run.ask(asked, at, epoch) is not None, 60, "a schedule's turn", 0.02)
    return float(run.ask(asked, at, epoch))


def check(run: RowRun) -> None:
    result, history = run.result, run.history
    turns = history.of("turn")
    gap = max((event.more["gap"] for event in turns), default=99.0)
    took = max((event.more["take_over"] for event in turns), default=99.0)
    result.figures |= {"schedule_gap_s": round(gap, 2), "take_over_s": round(took, 2)}
    seen = ", ".join(f"{e.more['kind']} {e.more['gap']:.2f}" for e in turns)
    result.must(
        f"first turn ≤ {GAP_S:g} s after another leads or PostgreSQL is back",
        f"{gap:.2f} s ({seen})",
        held=gap <= GAP_S,
    )
    result.must(
        f"another leads ≤ {TAKE_OVER_S:g} s after the leader is gone",
        f"{took:.2f} s",
        held=took <= TAKE_OVER_S,
    )
    slots = [event for event in history.of("slot") if event.more["outcome"] != "duplicate"]
    doubled = len(slots) - len({(e.more["schedule"], e.more["slot"]) for e in slots})
    result.must(
        "slots with a second job", f"{doubled} of {len(slots)}", held=doubled == 0 < len(slots)
    )
    missing = sum(
        missing_slots(run, name, settings["missed"], slots) for name, settings in SCHEDULES.items()
    )
    result.must("slots that never came", missing, held=missing == 0)
