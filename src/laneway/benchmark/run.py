"""One run of `laneway bench`: phases that share the given time, then the removal of all jobs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from statistics import quantiles
from typing import IO, Final

from laneway import __version__
from laneway.app.laneway import Laneway
from laneway.benchmark import bottleneck
from laneway.benchmark.app import make_app
from laneway.benchmark.bottleneck import Load, Pooling
from laneway.benchmark.load import ConnectionSamples, MachineTimes, cores_used, sampled
from laneway.benchmark.report import BenchmarkReport, Rates
from laneway.client.spec import Given
from laneway.errors import LanewayError, MissingRight, Refused
from laneway.store import benchmark, health, lanes, migrate
from laneway.store.benchmark import CPU, NAME, NOOP, STAMP
from laneway.store.database import Database

BATCH: Final = 1000
# Raw rows are dropped with their tables; jobs are deleted from the tables of the user.
MOST_ROWS: Final = 300_000
MOST_JOBS: Final = 100_000
MOST_STARTS: Final = 120
COMMITS: Final = 200
START_INTERVAL_S: Final = 0.05
WORKER_S: Final = 60.0
STOP_S: Final = 10.0
PAYLOAD: Final = {"text": "x" * 39}


class WorkerFailed(LanewayError):
    """The worker process of the benchmark ended early or ran no job."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of each phase."""

    insert: float
    take: float
    submit_many: float
    submit: float
    drain: float
    start: float

    @classmethod
    def of(cls, seconds: float) -> Phases:
        """Share `seconds`; what is left is for the start of the worker and for the removal."""
        part = seconds / 60
        return cls(6 * part, 6 * part, 9 * part, 5 * part, 12 * part, 6 * part)


async def run(db: Database, seconds: float, say: Callable[[str], None]) -> BenchmarkReport:
    """Measure for about `seconds`; remove everything also when cancelled."""
    await check(db)
    pooling = await health.find_pooler(db.dsn, db.settings.connect_timeout)
    async with benchmark.raw_schema(db):
        return await _Run(db, Phases.of(seconds), pooling, say).measure()


async def check(db: Database) -> None:
    """Raise unless the benchmark can run in the database without harm."""
    await asyncio.to_thread(migrate.check, db.dsn, __version__)
    rights = await db.run(benchmark.check_rights())
    role = await db.run(health.current_role())
    database = await db.run(health.current_database())
    if not rights.owns_tables:
        raise MissingRight(
            f"the benchmark deletes its jobs from tables that the role {role} does not own",
            "run it as the owner of the schema laneway",
        )
    if not rights.may_create_schema:
        raise MissingRight(
            f"the benchmark needs a schema for raw rows, and the role {role} may not create one",
            f'grant create on database "{database}" to "{role}"',
        )
    if (await db.run(lanes.read())).paused:
        raise Refused("the pause gate is closed, so no job would run: `laneway resume` opens it")


class _Run:
    """The phases, in order."""

    def __init__(
        self, db: Database, phases: Phases, pooling: Pooling, say: Callable[[str], None]
    ) -> None:
        self._db = db
        self._phases = phases
        self._pooling = pooling
        self._say = say

    async def measure(self) -> BenchmarkReport:
        db, phases = self._db, self._phases
        limit_s = db.settings.connect_timeout
        found = await health.read_settings(db.dsn, limit_s, bottleneck.SETTINGS)
        self._say("round trips and commits …")
        speed = await health.measure_commits(db.dsn, limit_s, COMMITS)
        self._say("raw rows in PostgreSQL …")
        inserted, taken = await self._raw()
        async with make_app(db.dsn) as lw:
            self._say("submit_many …")
            many = await self._submit_many(lw)
            self._say("submit, one by one …")
            single = await self._submit(lw)
            self._say("drain with one worker process …")
            async with started_worker(db.dsn) as worker:
                drained, samples, machine = await self._drain(worker)
                readings = await (await lw.submit(CPU, workspace=NAME)).wait(WORKER_S)
                self._say("from submit to start …")
                cuts = quantiles(await self._starts(lw, phases.start), n=100, method="inclusive")
        load = Load(
            worker_cores=cores_used(readings),
            database_cores=samples.cores(),
            connection=samples.busiest(),
            machine=machine,
            processors=os.cpu_count() or 1,
        )
        rates = Rates(
            round_trip_ms=speed.round_trip * 1000,
            commit_ms=None if speed.commit is None else speed.commit * 1000,
            raw_insert_per_s=inserted,
            raw_take_per_s=taken,
            submit_many_per_s=many,
            submit_per_s=single,
            drain_per_s=drained,
            start_p50_ms=cuts[49],
            start_p99_ms=cuts[98],
        )
        settings = {name: one.value for name, one in found.items()}
        return BenchmarkReport(
            rates,
            load,
            bottleneck.limit_of(load, speed, self._pooling),
            bottleneck.notes(settings, self._pooling),
        )

    async def _raw(self) -> tuple[float, float]:
        """Rows per second of PostgreSQL alone: inserted, and taken and recorded."""
        payload = json.dumps(PAYLOAD)
        async with self._db.connection() as conn:

            async def insert(first: int) -> None:
                await benchmark.insert_rows(conn, first, first + BATCH - 1, payload)

            async def take(first: int) -> None:
                await benchmark.take_rows(conn, first, first + BATCH - 1)

            inserted, rows = await _rate(insert, self._phases.insert, MOST_ROWS)
            taken, _ = await _rate(take, self._phases.take, rows)
        return inserted, taken

    async def _submit_many(self, lw: Laneway) -> float:
        batch: list[Given] = [(NOOP, PAYLOAD, {"workspace": NAME})] * BATCH

        async def submit(first: int) -> None:
            await lw.submit_many(batch, wake=False)

        rate, _ = await _rate(submit, self._phases.submit_many, MOST_JOBS)
        return rate

    async def _submit(self, lw: Laneway) -> float:
        until = time.perf_counter() + self._phases.submit
        count, began = 0, time.perf_counter()
        while (now := time.perf_counter()) < until or count == 0:
            await lw.submit(NOOP, PAYLOAD, workspace=NAME, wake=False)
            count += 1
        return count / (now - began) if now > began else 0.0

    async def _drain(self, worker: WorkerProcess) -> tuple[float, ConnectionSamples, float | None]:
        """Jobs per second, samples of connections, and how busy the machine was."""
        db = self._db
        deadline = time.monotonic() + WORKER_S
        while not (await db.run(benchmark.find_progress())).has_ended:
            worker.check()
            if time.monotonic() > deadline:
                raise WorkerFailed(f"the worker ran no job in {WORKER_S:.0f} s: {worker.output()}")
            await asyncio.sleep(0.05)
        is_local = self._pooling is None and await db.run(benchmark.is_local())
        before = MachineTimes.read() if is_local else None
        until = time.monotonic() + self._phases.drain
        async with sampled(db) as samples:
            while time.monotonic() < until:
                worker.check()
                if not (await db.run(benchmark.find_progress())).has_waiting:
                    break
                await asyncio.sleep(0.1)
        after = MachineTimes.read() if is_local else None
        # What this process cannot drain in time must not delay the starts.
        await benchmark.remove_waiting(db)
        drained = await db.run(benchmark.measure_drain())
        busy = before.busy_share(after) if before is not None and after is not None else None
        return drained.per_s, samples, busy

    async def _starts(self, lw: Laneway, seconds: float) -> list[float]:
        """Milliseconds from just before each submit to the first line of the handler."""
        count = max(10, min(MOST_STARTS, int(seconds / START_INTERVAL_S)))
        sent = []
        for _ in range(count):
            await asyncio.sleep(START_INTERVAL_S * random.uniform(0.5, 1.5))
            before = time.time_ns()
            sent.append((before, await lw.submit(STAMP, workspace=NAME)))
        return [(await job.wait(WORKER_S) - before) / 1e6 for before, job in sent]


async def _rate(
    do_batch: Callable[[int], Awaitable[None]], seconds: float, most: int
) -> tuple[float, int]:
    """Rows per second of batches, until the seconds or the rows are used up; and the rows.

    The first batch plans the statements and is not counted.
    """
    await do_batch(1)
    rows, began = BATCH, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds and rows < most:
        await do_batch(rows + 1)
        rows += BATCH
    passed = time.perf_counter() - began
    return ((rows - BATCH) / passed if rows > BATCH else 0.0), rows


class WorkerProcess:
    """The worker process of the benchmark."""

    def __init__(self, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._process = process
        self._log = log

    def check(self) -> None:
        """Raise if the process has ended."""
        if self._process.returncode is not None:
            raise WorkerFailed(f"the worker of the benchmark ended: {self.output()}")

    def output(self) -> str:
        """The end of its log."""
        self._log.seek(0)
        return self._log.read()[-2000:].decode(errors="replace").strip() or "it logged nothing"


@contextlib.asynccontextmanager
async def started_worker(dsn: str) -> AsyncIterator[WorkerProcess]:
    """Run a worker process; it ends with the block, and with this process."""
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "laneway.benchmark.worker",
            # Never written to: its end tells the worker that this process has ended.
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "LANEWAY_DATABASE_URL": benchmark.with_name(dsn)},
            # Ctrl-C reaches only this process, which stops the worker.
            start_new_session=True,
        )
        try:
            yield WorkerProcess(process, log)
        finally:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
