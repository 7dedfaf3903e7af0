"""The state of a row: its recorded database, its workers, and the history of submits."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import psycopg

from laneway import Laneway
from laneway.client import JobOptions
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import DatabaseUnavailable, LanewayError, Refused
from laneway.testing import faults, recorder
from laneway.testing.checker import check, overlaps, stale_writes
from laneway.testing.history import Final, History
from laneway.testing.recorder import Conn
from laneway.testing.violation import Violation
from tests.crash.clusters import Clusters, server_errors
from tests.crash.observer import Observer
from tests.crash.processes import WorkerProcess

# The lease, watchdog and backoff intervals of these tests, plus five seconds.
DRAIN_S = 2.0 + 0.25 + 0.4 + 5.0
READY_S = 60.0

Job = tuple[str, dict[str, Any], JobOptions]


class Stuck(Exception):
    """An expected event did not happen in time."""


@dataclass
class Result:
    """The result of a row."""

    row: str
    jobs: int = 0
    faults: int = 0
    stale_refused: int = 0
    stale_accepted: int = 0
    acked_lost: int = 0
    overlaps: int = 0
    seconds: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def must(self, law: str, seen: object, *, held: bool) -> None:
        """Record a law and the observed value."""
        self.lines.append(f"{'ok  ' if held else 'FAIL'} {law}: {seen}")
        if not held:
            self.violations.append(Violation(self.row, None, f"{law}: {seen}"))


class RowRun:
    """One row's database, workers and history."""

    def __init__(
        self,
        row: str,
        postgres: EmbeddedPostgres,
        clusters: Clusters,
        scale: float,
        seed: int,
        home: str,
        only: tuple[str, ...] = (),
        *,
        is_timed: bool = True,
    ) -> None:
        self.result = Result(row)
        self.postgres = postgres
        self.sink = clusters.sink(home)
        self.scale = scale
        # One generator for faults, one for load: neither shifts the other's sequence.
        self.random = random.Random(f"{seed}/{row}/faults")
        self.load_random = random.Random(f"{seed}/{row}/load")
        self.history = History()
        self.workers: list[WorkerProcess] = []
        self.dsn = postgres.dsn
        self.worker_dsn = self.dsn
        self.worker_settings: dict[str, str] = {}
        self.app = "tests.crash.app:lw"
        self.client_settings: dict[str, Any] = {}
        self._conn: Conn | None = None
        self._ops = 0
        self.last_fault = time.monotonic()
        self.only = only
        self._is_timed = is_timed
        self.apply_mutant: Callable[[Conn], None] | None = None
        # The status and the result of each job by its op, where the row knows them in advance.
        self.expected: dict[str, tuple[str, Any]] = {}

    def count(self, full: int, least: int = 1) -> int:
        """Scale a count to this run."""
        return max(least, round(full * self.scale))

    # The database -----------------------------------------------------------------------------

    @property
    def conn(self) -> Conn:
        if self._conn is None or self._conn.closed:
            self._conn = psycopg.connect(self.dsn, autocommit=True, application_name="crash")
        return self._conn

    def ask(self, query: str, *params: object) -> Any:
        """The first value of the first row."""
        row = self.conn.execute(query.encode(), params).fetchone()
        return row[0] if row else None

    def clock(self) -> float:
        """The database's clock."""
        return float(self.ask("select extract(epoch from clock_timestamp())::float8"))

    # Workers ----------------------------------------------------------------------------------

    def start_worker(self, **options: Any) -> WorkerProcess:
        worker = WorkerProcess(
            self.worker_dsn,
            self.sink,
            sink_dsn=self.dsn,
            app=self.app,
            extra={**self.worker_settings, **options.pop("extra", {})},
            **options,
        )
        self.workers.append(worker)
        return worker

    async def ready(self, *workers: WorkerProcess) -> None:
        """Wait until each of these workers has registered."""
        for worker in workers:

            def is_known(worker: WorkerProcess = worker) -> bool:
                if not worker.is_alive:
                    raise Stuck(f"the worker did not start:\n{worker.log.read_text()[-2000:]}")
                return self.worker_pid(worker) is not None

            await wait_until(is_known, READY_S, "a worker is ready")

    def worker_pid(self, worker: WorkerProcess) -> int | None:
        """The process that runs the handlers, once it has registered."""
        pids = worker.tree() if worker.is_supervised else [worker.pid]
        found: int | None = self.ask(
            "select pid from laneway.workers where pid = any (%s) and stopped_at is null"
            " order by started_at desc limit 1",
            pids,
        )
        return found

    def is_at_work(self, worker: WorkerProcess) -> bool:
        """Whether the process that runs handlers has had a job, or has been ready for 2 s."""
        return bool(
            self.ask(
                "select exists (select from laneway.workers w where w.pid = %s"
                " and w.stopped_at is null and (w.started_at < clock_timestamp() - interval '2 s'"
                " or exists (select from laneway.slot_usage u where u.worker_id = w.id)))",
                self.worker_pid(worker),
            )
        )

    def fault(self, **more: Any) -> None:
        """Record that a fault was injected just now."""
        self.result.faults += 1
        self.last_fault = time.monotonic()
        self.history.add("fault", t=self.last_fault, **more)

    def kill(self, worker: WorkerProcess, *pids: int) -> float:
        """Kill processes of a worker, or all of them; return the time by the database's clock."""
        doomed = pids or tuple(worker.tree())
        at = self.clock()
        faults.kill(*doomed)
        self.fault(kind="kill", pids=doomed)
        for pid in doomed:
            self.history.add("death", at=at, pid=pid, t=time.monotonic())
        return at

    # Submits ----------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Laneway]:
        """An application that only submits."""
        async with Laneway(self.worker_dsn, **self.client_settings) as client:
            yield client

    def job(self, job_type: str, /, _options: dict[str, Any] | None = None, **payload: Any) -> Job:
        """A job to submit, with a unique `op` in its payload."""
        self._ops += 1
        options = cast("JobOptions", _options or {})
        return job_type, {"op": f"{self.result.row}-{self._ops}", **payload}, options

    async def submit(self, client: Laneway, *jobs: Job) -> list[str]:
        """Submit one job alone or several by COPY; return the ids of those acknowledged."""
        self._note(jobs, "invoke")
        try:
            if len(jobs) == 1:
                job_type, payload, options = jobs[0]
                made = [await client.submit(job_type, payload, **options)]
            else:
                made = await client.submit_many(jobs)
        except DatabaseUnavailable:
            # Perhaps the job was stored and only the result is lost.
            self._note(jobs, "info")
            return []
        except LanewayError:
            self._note(jobs, "fail")
            raise
        ids = []
        for (_, payload, options), handle in zip(jobs, made, strict=True):
            op = payload["op"] if not handle.duplicate else f"duplicate of {handle.id}"
            self.history.add(
                "submit",
                str(handle.id),
                op=op,
                phase="ok",
                unique_key=options.get("unique_key"),
                t=time.monotonic(),
            )
            ids.append(str(handle.id))
        return ids

    def _note(self, jobs: Iterable[Job], phase: str) -> None:
        for _, payload, options in jobs:
            self.history.add(
                "submit",
                op=payload["op"],
                phase=phase,
                unique_key=options.get("unique_key"),
                t=time.monotonic(),
            )

    async def cancel(self, client: Laneway, job: str) -> bool:
        """Cancel a job; return whether the result is known."""
        try:
            found = await client.cancel(UUID(job))
        except DatabaseUnavailable:
            return False
        except Refused:
            return True
        self.history.add("cancel", job, phase="ok", found=str(found))
        return True

    # The end ----------------------------------------------------------------------------------

    def waiting(self) -> int:
        """Count jobs that have not ended, and ends that are not processed yet."""
        tables = (
            *("ready", "delayed", "lease", "awaiting", "key_waiters", "self_finished"),
            *("waiting", "arrivals"),
        )
        counts = (f"(select count(*) from laneway.{table})" for table in tables)
        return int(self.ask(f"select {' + '.join(counts)}"))

    async def drain(self, within_s: float = DRAIN_S) -> None:
        """Wait for the last job; I12 bounds the time after the last fault."""
        with contextlib.suppress(Stuck):
            await wait_until(lambda: self.waiting() == 0, within_s + 60, "the last job ends")
        took, left = time.monotonic() - self.last_fault, self.waiting()
        self.must_in_time(
            f"drained ≤ {within_s:.2g} s after the last fault", f"{took:.1f} s", took <= within_s
        )
        self.result.must("jobs left", left, held=not left)

    def must_in_time(self, law: str, seen: object, held: bool) -> None:
        """Record a bound in seconds; it is judged only on an otherwise idle machine."""
        if self._is_timed:
            self.result.must(law, seen, held=held)
        else:
            self.result.lines.append(f"     {law}: {seen}")

    async def drain_all(self, within_s: float) -> None:
        """Wait for the last job, where the jobs themselves are the faults."""
        await wait_until(lambda: self.waiting() == 0, within_s, "the last job ends")

    def must_end_as_expected(self) -> int:
        """Compare the ends of jobs with those expected; return how many differ."""
        found = {job.op: (job.status, job.result) for job in self.final.jobs.values()}
        # Jobs that do not exist were not acknowledged; I1 checks the others.
        other = [
            f"{op}: {found[op]}, not {end}"
            for op, end in self.expected.items()
            if op in found and found[op] != end
        ]
        shown = f"{len(other)} of {len(self.expected)} {other[:3] or ''}"
        self.result.must("ends unlike those without faults", shown, held=not other)
        return len(other)

    def handlers(self) -> History:
        """The events that handlers have recorded so far."""
        return History.load(*sorted(self.sink.glob("*.jsonl")))

    def judge(self, observer: Observer) -> None:
        """Combine the history and check every law."""
        self.history.events += recorder.read(self.conn)
        self.history.events += self.handlers().events
        self.history.events += observer.events
        final = recorder.read_final(self.conn)
        result = self.result
        broken = check(self.history, final)
        stale = stale_writes(self.history, final)
        result.violations += broken
        result.jobs = len(final.jobs)
        result.lines.append(f"     {len(stale.refused)} writes of superseded attempts were refused")
        result.stale_accepted += len(stale.accepted)
        result.acked_lost += sum(violation.law == "I1" for violation in broken)
        result.overlaps = overlaps(self.history)
        errors = server_errors(self.postgres)
        result.must("no deadlock at the server", len(errors), held=not errors)
        result.must("laws broken", len(broken), held=not broken)
        self.final: Final = final

    async def stop_workers(self) -> None:
        """Stop all workers, and kill those that do not stop."""
        for worker in self.workers:
            if worker.is_alive:
                faults.resume(*worker.tree())
                worker.terminate()
        for worker in self.workers:
            with contextlib.suppress(Stuck):
                await wait_until(lambda w=worker: not w.is_alive, 3, "a worker ends")  # type: ignore[misc]
            worker.end()

    async def close(self) -> None:
        await self.stop_workers()
        if self._conn is not None:
            self._conn.close()


async def wait_until(
    condition: Callable[[], bool], within_s: float, what: str, every_s: float = 0.02
) -> float:
    """Wait for a condition; return the seconds that it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within_s:
            raise Stuck(f"after {within_s} s not yet: {what}")
        await asyncio.sleep(every_s)
    return time.monotonic() - began


async def cancel_load(load: asyncio.Future[Any]) -> None:
    """Stop the submits after a failure elsewhere."""
    load.cancel()
    await asyncio.gather(load, return_exceptions=True)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed; nan if there are none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
