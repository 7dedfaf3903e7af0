"""C18: handlers finish in application transactions; they are killed before and after the commit.

Each kill waits until a handler announces its point: between its writes and the commit, or right
after it. Children that run one handler are killed alone, and some kill themselves while they
commit; other workers die with all their jobs. First come superseded attempts: they must not
finish, in any transaction.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator

from laneway import Laneway
from laneway.testing import faults
from tests.crash.drivers import ASYNC, SYNC
from tests.crash.fork_server import ForkServer
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import Job, RowRun, Stuck, wait_until
from tests.crash.transaction_app import PARTS

# Kills of worker processes with all their jobs, and of children with one handler.
WORKER_KILLS, CHILD_KILLS = 78, 22
WORKERS, CHILDREN = 4, 2
# Jobs that have not reached their kill point.
WORKER_LOAD, CHILD_LOAD = 16, 4
GATHER_S = 0.1
WITHIN_S = 180.0
# A job in a child waits for an interpreter to start.
DRAIN_S = 15.0
KINDS = {
    **dict.fromkeys(ASYNC, "ledger"),
    **dict.fromkeys(SYNC, "ledger_thread"),
}


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.transaction_app:lw"
    (run.sink / "points").mkdir()
    async with run.client() as client:
        await _inject_stale(run, client)
        if "stale" in run.only:
            return
        run.worker_settings = {"LANEWAY_CHILDREN": str(CHILDREN)}
        keeper = run.start_worker(lanes="isolated")
        with ForkServer(run.dsn, run.sink, run.app, "default") as fork_server:
            killer = Killer(run, client, keeper, fork_server)
            await run.ready(keeper, *killer.workers)
            await run.submit(client, *_rolling_back(run))
            await killer.kill_some()
            (run.sink / "points" / "over").touch()
            await run.drain(DRAIN_S)
            for worker in killer.workers:
                worker.end()


def _rolling_back(run: RowRun) -> Iterator[Job]:
    """Jobs that finish and roll back, silently or with an error; and some without faults."""
    for driver, kind in KINDS.items():
        for points in (["rollback"], ["raise"], ["rollback", "raise"], []):
            yield run.job(kind, driver=driver, points=points)


# Superseded -------------------------------------------------------------------------------------


async def _inject_stale(run: RowRun, client: Laneway) -> None:
    """Let one attempt per driver write, outlive its lease, and finish while the next one runs."""
    first = run.start_worker(lanes="default")
    await run.ready(first)
    jobs = [
        run.job(kind, driver=driver, points=["stale", "second"]) for driver, kind in KINDS.items()
    ]
    ids = await run.submit(client, *jobs)
    await wait_until(lambda: _at(run, ids, "stale"), 20, "all first attempts have written")
    second = run.start_worker(lanes="default")
    await run.ready(second)
    asleep = first.tree()
    faults.pause(*asleep)
    await wait_until(lambda: _at(run, ids, "second"), 20, "all second attempts have written")
    for _ in ids:
        run.fault(kind="stale")
    (run.sink / "points" / "stale").touch()
    faults.resume(first.pid)  # not its heartbeat, which would notice the lost leases
    try:
        await wait_until(
            lambda: _answered(run, ids) == len(ids), 20, "every stale finish is answered"
        )
    finally:
        (run.sink / "points" / "second").touch()
        faults.resume(*asleep)
    await wait_until(lambda: run.waiting() == 0, 20, "the second attempts finish")
    for worker in (first, second):
        worker.end()


def _at(run: RowRun, ids: list[str], point: str) -> bool:
    return all(os.path.lexists(run.sink / "points" / f"{job}.{point}") for job in ids)


def _answered(run: RowRun, ids: list[str]) -> int:
    """Count first attempts that were refused, or whose finish was accepted."""
    notified = {event.job for event in run.handlers().of("notified")}
    taken = run.conn.execute(
        "select j.id::text from crash.seen w join laneway.jobs j using (seq)"
        " where w.what = 'write' and w.attempt = 1 and w.more ->> 'verb' = 'finish apart'"
    )
    return len((notified | {row[0] for row in taken}) & set(ids))


# Killed -----------------------------------------------------------------------------------------


class Killer:
    """Kills processes that announce their kill point, and keeps enough jobs on their way to one."""

    def __init__(
        self, run: RowRun, client: Laneway, keeper: WorkerProcess, fork_server: ForkServer
    ) -> None:
        self._run = run
        self._client = client
        self._keeper = keeper
        self._fork_server = fork_server
        self.workers: list[WorkerProcess] = [fork_server.start_worker() for _ in range(WORKERS)]
        self._driver: dict[str, str] = {}
        self._is_child: dict[str, bool] = {}
        self._met: set[str] = set()
        self._there: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        self._since: dict[int, float] = {}
        self._left = {
            False: run.count(WORKER_KILLS, 4),
            True: run.count(CHILD_KILLS, 6),
        }
        # In turns, so that every driver is killed at every point.
        in_worker = [
            (kind, driver, point) for point in ("before", "after") for driver, kind in KINDS.items()
        ]
        in_child = [
            ("ledger_child", driver, point)
            for point in ("before", "during", "after")
            for driver in SYNC
        ]
        self._next = {False: itertools.cycle(in_worker), True: itertools.cycle(in_child)}

    async def kill_some(self) -> None:
        deadline = time.monotonic() + WITHIN_S
        while sum(self._left.values()) > 0:
            if time.monotonic() > deadline:
                raise Stuck(f"after {WITHIN_S:g} s some are not killed yet: {self._left}")
            await self._top_up()
            self._kill_at_points()
            await asyncio.sleep(0.02)

    async def _top_up(self) -> None:
        for is_child, load in ((False, WORKER_LOAD), (True, CHILD_LOAD)):
            on_their_way = sum(
                self._is_child[job] is is_child for job in self._driver.keys() - self._met
            )
            jobs = []
            for _ in range(load - on_their_way if self._left[is_child] > 0 else 0):
                kind, driver, point = next(self._next[is_child])
                jobs.append(self._run.job(kind, driver=driver, points=[point]))
            if jobs:
                ids = await self._run.submit(self._client, *jobs)
                for job, (_, payload, _) in zip(ids, jobs, strict=True):
                    self._driver[job] = payload["driver"]
                    self._is_child[job] = is_child

    def _kill_at_points(self) -> None:
        for entry in os.scandir(self._run.sink / "points"):
            job, _, point = entry.name.partition(".")
            if job in self._driver and job not in self._met:
                self._met.add(job)
                self._there[int(os.readlink(entry.path))].append((job, point))
        for pid, jobs in list(self._there.items()):
            # Wait for other jobs of the process that are nearly there.
            since = self._since.setdefault(pid, time.monotonic())
            if self._is_child[jobs[0][0]] or time.monotonic() - since > GATHER_S:
                self._kill(pid, self._there.pop(pid))

    def _kill(self, pid: int, jobs: list[tuple[str, str]]) -> None:
        is_child = self._is_child[jobs[0][0]]
        if self._left[is_child] <= 0:
            return
        for job, point in jobs:
            self._run.history.add("hit", job, driver=self._driver[job], point=point)
        if jobs[0][1] == "during":
            # The child kills itself; no other process could be quick enough.
            self._run.fault(kind="kill", pids=[pid])
        elif is_child:
            self._run.kill(self._keeper, pid)
        else:
            place = next((i for i, w in enumerate(self.workers) if w.pid == pid), None)
            if place is None:
                return  # announced while the process was already being killed
            self._run.kill(self.workers[place], pid)
            self.workers[place] = self._fork_server.start_worker()
        self._left[is_child] -= 1


# What must hold ---------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result = run.result
    notified = {event.job for event in run.history.of("notified")}
    result.stale_refused += len(notified)
    result.must(
        "superseded attempts could not finish", f"{len(notified)}/{len(KINDS)}",
        held=len(notified) == len(KINDS),
    )  # fmt: skip
    hits = Counter((e.more["driver"], e.more["point"]) for e in run.history.of("hit"))
    kills = result.faults - len(KINDS)
    if "stale" not in run.only:
        _judge_kills(run, kills, hits)
    orphans, doubled, bare = _compare(run)
    result.must("rows without a completion", len(orphans), held=not orphans)
    result.must("jobs whose rows are there twice", len(doubled), held=not doubled)
    result.must("completions without their rows", len(bare), held=not bare)
    result.figures.update(
        own_transaction_kills=kills,
        effects_without_completion=len(orphans),
        effects_doubled=len(doubled),
        completions_without_effect=len(bare),
    )


def _judge_kills(run: RowRun, kills: int, hits: Counter[tuple[str, str]]) -> None:
    wanted = run.count(WORKER_KILLS, 4) + run.count(CHILD_KILLS, 6)
    run.result.must(
        f"processes killed at an announced point, ≥ {wanted}", kills, held=kills >= wanted
    )
    for driver in KINDS:
        where = {point: n for (of, point), n in sorted(hits.items()) if of == driver}
        run.result.lines.append(
            f"     {driver}: {', '.join(f'{n} {point} the commit' for point, n in where.items())}"
        )
        if run.scale >= 1:
            run.result.must(
                f"{driver} was killed before and after its commit, 5 times each",
                where,
                held=min(where.get("before", 0), where.get("after", 0)) >= 5,
            )
    again = run.conn.execute(
        "select j.id::text, j.payload -> 'points' from laneway.jobs j"
        " where j.payload -> 'points' ?| array['rollback', 'raise']"
    ).fetchall()
    done = sum(
        run.final.jobs[job].status == "completed" and run.final.jobs[job].attempt > len(points)
        for job, points in again
    )
    run.result.must(
        "rolled back after the finish, tried again, completed",
        f"{done}/{len(again)}",
        held=done == len(again) > 0,
    )


def _compare(run: RowRun) -> tuple[set[str], set[str], set[str]]:
    """Jobs with rows and no completion, with rows twice, and completed without all their rows."""
    rows = defaultdict(list)
    for job, attempt, part, tx in run.conn.execute(
        "select job::text, attempt, part, tx::text::bigint from crash.ledger order by n"
    ):
        rows[job].append((attempt, part, tx))
    completed = {
        event.job: (event.attempt, event.tx)
        for event in run.history.of("outcome")
        if event.more["status"] == "completed"
    }
    orphans = {
        job
        for job, found in rows.items()
        if any((attempt, tx) != completed.get(job) for attempt, _, tx in found)
    }
    doubled = {job for job, found in rows.items() if len(found) > len(PARTS)}
    bare = {
        str(job)
        for job, (attempt, tx) in completed.items()
        if not set(rows[str(job)]) >= {(attempt, part, tx) for part in PARTS}
    }
    return orphans, doubled, bare
