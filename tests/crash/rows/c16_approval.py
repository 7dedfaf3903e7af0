"""C16: jobs that need approval, while analyses, approvers and workers are killed.

Two approvers in separate processes decide about every job at the same time. At intervals the test
locks a job until both wait to decide about it. Then it kills one of them, or both, or none, and
releases the job. Some jobs expire meanwhile, some are changed after their approval. Some are
submitted before any worker has published that their type needs approval.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
from collections import Counter

import psycopg

from laneway import Laneway
from laneway.testing import faults
from tests.crash.processes import ROOT, WorkerProcess, worker_environment
from tests.crash.row_run import Job, RowRun, Stuck, wait_until

ROUNDS = 20
WORKERS = 3
PER_ROUND = 8
EARLY = 9
CHANGED, HOPELESS = 6, 3
# The faults of a round: to waiting approvers, and to a worker.
ROUND_KINDS = (("race", "analysis"), ("one killed", None), ("race", "run"), ("both killed", None))


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.policy_app:lw"
    async with run.client() as client:
        types = itertools.cycle(["guarded", "cheap", "brief"])
        early = [_job(run, "early", next(types)) for _ in range(EARLY)]
        ids = await run.submit(client, *early)
        run.history.add("early", kind="approved", jobs=_approved(run, ids))
    workers = [run.start_worker() for _ in range(WORKERS)]
    await run.ready(*workers)
    with contextlib.ExitStack() as deciders:
        pair = Pair(run, deciders)
        async with run.client() as client:
            await run.submit(client, *(_job(run, "hopeless") for _ in range(HOPELESS)))
            kinds = itertools.cycle(ROUND_KINDS)
            for _ in range(run.count(ROUNDS, len(ROUND_KINDS))):
                decide, work = next(kinds)
                await run.submit(client, *_mixed(run, work))
                await _decide(run, client, pair, decide)
                if work is not None:
                    await _kill_at_work(run, workers, work)
            await _change_some(run, client)
            # The decision of a killed approver is void: its successor decides about that job too.
            (run.sink / "meeting").touch()
            (run.sink / "over").touch()
            await run.drain()


def _job(run: RowRun, fate: str, job_type: str = "guarded") -> Job:
    ms = run.load_random.randint(1, 40)
    return run.job(job_type, needs="approval", fate=fate, ms=ms)


def _mixed(run: RowRun, work: str | None) -> list[Job]:
    jobs = [
        _job(run, "plain", run.load_random.choice(["guarded", "guarded", "cheap", "brief"]))
        for _ in range(PER_ROUND - 1)
    ]
    last = run.job("guarded", needs="approval", fate="plain", ms=300)
    return [*jobs, last if work != "analysis" else _job(run, "linger")]


# Approvers ----------------------------------------------------------------------------------------


class Pair:
    """Two approvers of the same jobs; a killed one is replaced."""

    def __init__(self, run: RowRun, deciders: contextlib.ExitStack) -> None:
        self._run = run
        self._deciders = deciders
        self._numbers = itertools.count(1)
        self.processes = [self._start(), self._start()]

    def kill(self, *places: int) -> None:
        for place in places:
            process = self.processes[place]
            self._run.fault(kind="decider", pids=[process.pid])
            faults.kill(process.pid)
            process.wait()

    def follow(self, *places: int) -> None:
        for place in places:
            self.processes[place] = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        name = f"person-{next(self._numbers)}"
        process = subprocess.Popen(
            faults.tied([sys.executable, "-m", "tests.crash.approver", name]),
            cwd=ROOT,
            env=worker_environment(self._run.dsn, self._run.sink),
            start_new_session=True,
        )
        self._deciders.callback(process.wait)
        self._deciders.callback(process.kill)
        return process


async def _decide(run: RowRun, client: Laneway, pair: Pair, kind: str) -> None:
    """Let both wait to decide about one job; kill some of them, then release the job."""
    places = {"race": (), "one killed": (run.random.randrange(2),), "both killed": (0, 1)}[kind]
    (job,) = await run.submit(client, _job(run, "meeting"))
    with psycopg.connect(run.dsn, application_name="crash holds") as conn:
        await wait_until(lambda: _hold(conn, job), 30, "a job waits for an approval")
        (run.sink / "meeting").touch()
        await wait_until(lambda: _deciding(run) == 2, 30, "two decide about it", 0.005)
        (run.sink / "meeting").unlink()
        pair.kill(*places)
        run.history.add("met", kind=kind)
        conn.rollback()
    pair.follow(*places)


def _hold(conn: psycopg.Connection[tuple[object, ...]], job: str) -> bool:
    """Lock the job in a new transaction, which sees its current state."""
    conn.rollback()
    found = conn.execute(
        "select w.seq from laneway.awaiting w join laneway.jobs j using (seq) where j.id = %s"
        " for update of w",
        [job],
    )
    return found.fetchone() is not None


def _deciding(run: RowRun) -> int:
    return int(
        run.ask(
            "select count(*) from pg_stat_activity"
            " where wait_event_type = 'Lock' and strpos(query, 'laneway.decide') > 0"
        )
    )


# Workers ------------------------------------------------------------------------------------------


async def _kill_at_work(run: RowRun, workers: list[WorkerProcess], work: str) -> None:
    """Kill a worker while it analyzes a job, or runs an approved one."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [i for i, worker in enumerate(workers) if _is_at(run, worker, work)]
        return bool(found)

    # A rejected job never runs.
    with contextlib.suppress(Stuck):
        await wait_until(look, 5 if work == "run" else 30, f"a worker is at {work}", 0.005)
    if found:
        worker = workers[found[0]]
        run.kill(worker, worker.pid)
        run.history.add("met", kind=work)
        worker.process.wait()
        workers[found[0]] = run.start_worker()
        await run.ready(workers[found[0]])


def _is_at(run: RowRun, worker: WorkerProcess, work: str) -> bool:
    return bool(
        run.ask(
            r"select exists (select from laneway.lease l"
            r" join laneway.workers w on w.id = l.worker_id"
            r" where w.pid = %s and (l.job_type like E'\x01%%') = %s)",
            worker.pid,
            work == "analysis",
        )
    )


# Changed after the decision -----------------------------------------------------------------------


async def _change_some(run: RowRun, client: Laneway) -> None:
    """Change some approved jobs before they run."""
    _open_lane(run, is_open=False)
    ids = await run.submit(client, *(_job(run, "changed") for _ in range(CHANGED)))
    await wait_until(lambda: _approved(run, ids) == CHANGED, 30, "all are approved")
    run.conn.execute(
        "update laneway.jobs set payload = payload || '{\"ms\": 9999}' where id = any (%s::uuid[])",
        [ids],
    )
    for _ in ids:
        run.fault(kind="changed")
    _open_lane(run, is_open=True)


def _open_lane(run: RowRun, *, is_open: bool) -> None:
    run.conn.execute(
        "update laneway.worker_lanes set enabled = %s where name = 'default'", [is_open]
    )


def _approved(run: RowRun, ids: list[str]) -> int:
    return int(
        run.ask(
            "select count(*) from laneway.ready w join laneway.jobs j using (seq)"
            " where w.job_type = j.job_type and j.id = any (%s::uuid[])",
            ids,
        )
    )


# What must hold -----------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result, history = run.result, run.history
    met = Counter(event.more["kind"] for event in history.of("met"))
    result.must(
        "met: races, deciders killed, workers killed in analyses and runs",
        dict(met),
        held=all(met[kind] for kind in ("race", "one killed", "both killed", "analysis", "run")),
    )
    (early,) = (event.more["jobs"] for event in history.of("early"))
    result.must("approved before their type asked for approval", early, held=early == EARLY)
    phases = Counter(event.more["phase"] for event in history.of("decide"))
    unknown = phases["invoke"] - phases["ok"] - phases["fail"]
    result.must(
        "decisions asked for, made, refused, and without an answer",
        f"{phases['invoke']}, {phases['ok']}, {phases['fail']}, {unknown}",
        held=min(phases["ok"], phases["fail"], unknown) > 0,
    )
    made = Counter(event.more["decision"] for event in history.of("decision"))
    result.must(
        "decisions of every kind",
        dict(made),
        held=all(made[kind] for kind in ("approved", "automatic", "rejected", "expired")),
    )
    _judge_ends(run)
    broken = sum(violation.law in ("I14", "I15") for violation in result.violations)
    result.figures.update(
        decisions=sum(made.values()), decisions_wrong=broken, approval_faults=result.faults
    )


def _judge_ends(run: RowRun) -> None:
    result, history = run.result, run.history
    fates: dict[str, str] = dict(
        run.conn.execute("select id::text, payload ->> 'fate' from laneway.jobs").fetchall()
    )
    jobs = run.final.jobs
    changed = [jobs[job] for job, fate in fates.items() if fate == "changed"]
    stopped = sum((job.error or {}).get("type") == "NotAsApproved" for job in changed)
    result.must(
        "changed after the approval, and not run", f"{stopped}/{CHANGED}", held=stopped == CHANGED
    )
    hopeless = [jobs[job] for job, fate in fates.items() if fate == "hopeless"]
    ended = sum(job.status == "failed" and job.attempt >= 3 for job in hopeless)
    result.must("failed when three analyses had", f"{ended}/{HOPELESS}", held=ended == HOPELESS)
    starts = Counter(event.job for event in history.of("start"))
    analyses = {(e.job, e.attempt) for e in history.of("claim") if e.more["analysis"]}
    retried = Counter(
        event.job for event in history.of("kept") if (event.job, event.attempt) not in analyses
    )
    twice = [job for job, count in starts.items() if count > 1 + retried[job]]
    result.must("run twice and not retried", len(twice), held=not twice)
    agreed = {
        e.job for e in history.of("decision") if e.more["decision"] in ("approved", "automatic")
    }
    done = {job.job for job in jobs.values() if job.status == "completed"}
    idle = agreed - done - {job for job, fate in fates.items() if fate == "changed"}
    result.must("approved and not completed", len(idle), held=not idle)
