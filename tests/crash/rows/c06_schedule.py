"""C6: schedules are due every second while leaders are killed, stopped and disconnected.

A leader is killed while its statement waits for a lock: PostgreSQL still completes the statement.
A leader is stopped between reading due schedules and firing them, until another has led for a
while: its late statement must be refused. And all workers lose their connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg

from laneway import Laneway
from laneway.testing import faults
from laneway.testing.history import HistoryEvent
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import RowRun, wait_until

FAULTS = 12
WORKERS = 3
TAKE_OVER_S = 3.0
KINDS = ("kill", "stop", "cut off")
EACH_SECOND = "* * * * * *"
# Of each schedule, whether it may skip a slot and record that.
SCHEDULES: dict[str, dict[str, Any]] = {
    "made_up": {"missed": "catch_up", "catch_up": 1000},
    "in_time": {"missed": "skip"},
    "newest": {"missed": "coalesce"},
    "checked": {"missed": "catch_up", "catch_up": 1000, "check_name": "two_of_three"},
}
# A killed checker keeps its claim for the longest time of a check, plus 10 s.
CHECKED_S = 11.0 + 8.0


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.policy_app:lw"
    workers = [run.start_worker() for _ in range(WORKERS)]
    await run.ready(*workers)
    async with run.client() as client:
        for name, settings in SCHEDULES.items():
            await client.schedules.put(name, job_type="tick", cron=EACH_SECOND, **settings)
        await wait_until(lambda: _slots(run) >= len(SCHEDULES), 10, "every schedule comes round")
        kinds = itertools.cycle(KINDS)
        for _ in range(run.count(FAULTS, len(KINDS))):
            await _break(run, workers, next(kinds))
            # A worker must have led for a while before the next fault.
            so_far = _slots(run)
            await wait_until(lambda n=so_far: _slots(run) >= n + 4, 15, "slots go on")  # type: ignore[misc]
        await _stop_all(run, client)
        await run.drain_all(20)


def _slots(run: RowRun) -> int:
    return int(run.ask("select count(*) from laneway.schedule_slots where schedule <> 'checked'"))


async def _stop_all(run: RowRun, client: Laneway) -> None:
    """Wait until every slot up to now has fired, then disable all schedules."""
    now = run.ask("select clock_timestamp()")
    await wait_until(
        lambda: (
            not run.ask(
                "select exists (select from laneway.schedule_state where next_at <= %s)", now
            )
        ),
        CHECKED_S,
        "every slot has had its turn",
    )
    for name in SCHEDULES:
        await client.schedules.disable(name)
    run.history.add("stopped", at=now.timestamp())


# Faults -----------------------------------------------------------------------------------------


async def _break(run: RowRun, workers: list[WorkerProcess], kind: str) -> None:
    await wait_until(
        lambda: all(run.is_at_work(worker) for worker in workers), 30, "all workers work"
    )
    if kind == "cut off":
        run.conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name like 'laneway%'"
        )
        run.fault(kind=kind)
    elif kind == "kill":
        await _kill(run, workers)
    else:
        await _stop(run, workers)


async def _kill(run: RowRun, workers: list[WorkerProcess]) -> None:
    """Kill the leader while it waits to record a slot; PostgreSQL completes the statement."""
    await _just_before_a_second(run)
    with _held(run, "lock table laneway.schedule_slots in share row exclusive mode"):
        await wait_until(lambda: _leader_waits(run, "laneway.fire"), 10, "a turn waits", 0.002)
        leader = await find_leader(run, workers)
        at = run.kill(leader, leader.pid)
    run.history.add("deposed", at=at)
    leader.process.wait()
    workers[workers.index(leader)] = run.start_worker()


async def _stop(run: RowRun, workers: list[WorkerProcess]) -> None:
    """Stop the leader between reading and firing; resume it when another has fired."""
    await _just_before_a_second(run)
    with _held(run, "lock table laneway.schedules in access exclusive mode"):
        await wait_until(lambda: _leader_waits(run, "due_at"), 10, "the leader looks", 0.002)
        leader = await find_leader(run, workers)
        asleep = leader.tree()
        faults.pause(*asleep)
        at = run.clock()
        run.fault(kind="stop")
    run.history.add("deposed", at=at)
    epoch = run.ask("select epoch from laneway.leader")
    try:
        await wait_until(
            lambda: run.ask(
                "select exists (select from crash.seen where what = 'fire'"
                " and (more ->> 'epoch')::bigint > %s and more ->> 'answer' = 'fired')",
                epoch,
            ),
            10,
            "another leads and has its turn",
        )
    finally:
        faults.resume(*asleep)
    await wait_until(
        lambda: run.ask(
            "select exists (select from crash.seen where what = 'fire'"
            " and (more ->> 'epoch')::bigint <= %s and at > to_timestamp(%s) + interval '0.5 s')",
            epoch,
            at,
        ),
        10,
        "the one that was stopped has its say",
    )


async def _just_before_a_second(run: RowRun) -> None:
    now = run.clock()
    await asyncio.sleep((0.85 - now) % 1.0)


async def find_leader(run: RowRun, workers: list[WorkerProcess]) -> WorkerProcess:
    def find() -> WorkerProcess | None:
        pid = run.ask(
            "select w.pid from laneway.leader r join laneway.workers w on w.id = r.holder"
            " where r.held_until > clock_timestamp()"
        )
        return next((worker for worker in workers if worker.pid == pid), None)

    await wait_until(lambda: find() is not None, 10, "a worker leads", 0.005)
    found = find()
    assert found is not None
    return found


@contextlib.contextmanager
def _held(run: RowRun, lock: str) -> Iterator[None]:
    with psycopg.connect(run.dsn, application_name="crash holds") as conn:
        conn.execute(lock.encode())
        yield
        conn.rollback()


def _leader_waits(run: RowRun, words: str) -> bool:
    return bool(
        run.ask(
            "select exists (select from pg_stat_activity a join crash.leading l on l.pid = a.pid"
            " where a.wait_event_type = 'Lock' and strpos(a.query, %s) > 0)",
            words,
        )
    )


# What must hold ---------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result, history = run.result, run.history
    wanted = run.count(FAULTS, len(KINDS))
    result.must("leaders killed, stopped and cut off", result.faults, held=result.faults >= wanted)
    slots = [event for event in history.of("slot") if event.more["outcome"] != "duplicate"]
    doubled = len(slots) - len({(e.more["schedule"], e.more["slot"]) for e in slots})
    jobs = sum(str(e.more["created_by"]).startswith("schedule:") for e in history.of("born"))
    submitted = sum(event.more["outcome"] == "submitted" for event in slots)
    result.must(
        "slots with a second job", f"{doubled} of {len(slots)}", held=doubled == 0 < len(slots)
    )
    result.must(
        "jobs, and slots that submitted one", f"{jobs}, {submitted}", held=jobs == submitted
    )
    missing = sum(
        missing_slots(run, name, settings["missed"], slots) for name, settings in SCHEDULES.items()
    )
    result.must("slots that never came", missing, held=missing == 0)
    skipped = sum(event.more["outcome"] == "skipped" for event in slots)
    result.must("slots skipped by their check, without a job", skipped, held=skipped > 0)
    _judge_terms(run)
    result.figures.update(
        slots=len(slots), slots_doubled=doubled, slots_missing=missing, leader_faults=result.faults
    )


def missing_slots(run: RowRun, name: str, missed: str, slots: list[HistoryEvent]) -> int:
    """Count slots from the first to the stop that never fired and that no catch-up covers."""
    noted = {int(e.more["slot"]): e.more["note"] for e in slots if e.more["schedule"] == name}
    stop = int(max((event.at for event in run.history.of("stopped")), default=0))
    if not noted:
        return max(1, stop)
    gaps = [second for second in range(min(noted), stop + 1) if second not in noted]
    if missed != "coalesce":
        return len(gaps)
    stood_for = sum(
        int(found[1])
        for note in noted.values()
        if (found := re.match(r"also for (\d+)", note or ""))
    )
    return abs(len(gaps) - stood_for)


def _judge_terms(run: RowRun) -> None:
    history, result = run.history, run.result
    terms = [event.at for event in history.of("leader")]
    took = [
        min((at - deposed.at for at in terms if at > deposed.at), default=99.0)
        for deposed in history.of("deposed")
    ]
    result.must(
        f"another leads ≤ {TAKE_OVER_S:g} s after the leader is gone",
        f"{max(took, default=99.0):.2f} s",
        held=max(took, default=99.0) <= TAKE_OVER_S,
    )
    newest = 0
    stale: Counter[str] = Counter()
    for event in history.of("leader", "fire"):
        if event.what == "leader":
            newest = event.more["epoch"]
        elif event.more["epoch"] is not None and event.more["epoch"] < newest:
            stale[event.more["answer"]] += 1
    result.stale_refused += stale["fenced"]
    # Busy: the new leader holds the schedule's row at this moment; nothing was written.
    refused = stale["fenced"] + stale["busy"]
    result.must(
        "turns of former leaders, all refused",
        dict(stale),
        held=refused == sum(stale.values()) and stale["fenced"] > 0,
    )
