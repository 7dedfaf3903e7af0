"""An upgrade under load: a landed version works, this one migrates, and both run side by side.

Meanwhile a report and a dump read, old workers are killed and come back, an older `db migrate`
runs. `python -m tests.migration.upgrade_all` does it for every landed version.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from laneway.testing import faults
from tests.migration.landed import ROOT, Code

APP = "tests.migration.upgrade_app"
WITHIN_S = 60.0
AFTER_S = 2.0
SETTINGS = {
    "LANEWAY_LEADER_TTL": "1",
    "LANEWAY_WATCHDOG_INTERVAL": "0.25",
    "LANEWAY_SHUTDOWN_GRACE": "5",
}
_PREPARE = "update laneway.worker_lanes set lease_seconds = 5, poll_interval_ms = 250"


class Stuck(Exception):
    """An expected event did not happen in time."""


@dataclass
class Outcome:
    """The results of one upgrade."""

    commit: str
    jobs: int = 0
    kills: int = 0
    longest_submit_wait_s: float = 0.0
    migrated_s: float = 0.0
    waits: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


@dataclass
class Upgrade:
    """One database on its way from a landed version to the current one.

    `spoil` is called with a connection right after the migration, to show that it is noticed.
    `kills` of old workers, and of a migration after each of `pauses_s`.
    """

    code: Code
    now: Code
    dsn: str
    sink: Path
    spoil: Callable[[psycopg.Connection[tuple[Any, ...]]], None] | None = None
    kills: int = 1
    pauses_s: Sequence[float] = ()

    def __post_init__(self) -> None:
        self.outcome = Outcome(self.code.commit)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._killed: set[int] = set()
        self._doors: list[tuple[str, float]] = []
        self._upgrade_at = 0.0

    async def run(self) -> Outcome:
        try:
            await self._play()
        except (Stuck, psycopg.Error, AssertionError) as error:
            self.outcome.troubles.append(f"{type(error).__name__}: {error}"[:2000])
        finally:
            (self.sink / "over").touch()
            faults.end_all([pid for one in self._processes for pid in faults.tree(one.pid)])
            for process in self._processes:
                process.wait()
        return self.outcome

    async def _play(self) -> None:
        self.code.migrate(self.dsn)
        self._ask(_PREPARE)
        old = [self._worker(self.code) for _ in range(2)]
        client = self._start(self.code, "-m", APP)
        await self._until(lambda: len(self._runs()) > 20, "old workers run jobs")
        meter = asyncio.create_task(asyncio.to_thread(self._submit_by_sql))
        await self._migrate()
        migrated = time.time()
        if self.spoil is not None:
            with self._connected() as conn:
                self.spoil(conn)
        await self._until(lambda: self._ran(old, migrated) > 5, "old workers go on")
        await self._meddle()
        new = self._worker(self.now)
        await self._until(lambda: self._ran([new], migrated) > 0, "a new worker runs beside them")
        for _ in range(self.kills):
            await self._kill(old[0])
        late = self._worker(self.code)
        await self._until(lambda: self._ran([late], migrated) > 0, "an old worker starts again")
        await asyncio.sleep(AFTER_S)
        (self.sink / "over").touch()
        await meter
        await self._until(lambda: client.poll() is not None, "the old client ends")
        if client.returncode != 0:
            self.outcome.troubles.append(f"the old client failed: {self._log(client)}")
        await self._until(lambda: self._waiting() == 0, "the last job ends")
        self._judge()

    # The upgrade ------------------------------------------------------------------------------

    async def _migrate(self) -> None:
        """Migrate behind a report and a dump, which end after it has waited for them."""
        began = time.monotonic()
        self._upgrade_at = time.time()
        with self._connected() as reader:
            reader.execute("begin isolation level repeatable read")
            reader.execute("select count(*) from laneway.jobs_view")
            for (table,) in reader.execute(
                "select oid::regclass::text from pg_class where relkind = 'r'"
                " and relnamespace = 'laneway'::regnamespace"
            ).fetchall():
                reader.execute(f"lock table {table} in access share mode".encode())
            await self._kill_migrations()
            migration = self._start(self.now, "-m", "laneway", "db", "migrate")
            # Until they have blocked it, if they do at all.
            await self._until(
                lambda: migration.poll() is not None or self._waits(migration) > 1,
                "the migration ends or waits",
            )
            reader.execute("commit")
        await self._until(lambda: migration.poll() is not None, "the migration ends")
        if migration.returncode != 0:
            raise Stuck(f"the migration failed: {self._log(migration)}")
        self.outcome.migrated_s = time.monotonic() - began
        self.outcome.waits = self._waits(migration)

    def _waits(self, migration: subprocess.Popen[bytes]) -> int:
        return self._log(migration).count("waits for its locks")

    async def _kill_migrations(self) -> None:
        for pause_s in self.pauses_s:
            migration = self._start(self.now, "-m", "laneway", "db", "migrate")
            await asyncio.sleep(pause_s)
            faults.kill(*faults.tree(migration.pid))
            self.outcome.kills += 1

    async def _meddle(self) -> None:
        """An older `db migrate` changes nothing."""
        # It may drop those that no transaction can still call.
        functions = (
            "select string_agg(proname || ' ' || md5(pg_get_functiondef(oid)), ',' order by oid)"
            " from pg_proc where pronamespace = 'laneway'::regnamespace"
            " and proname !~ '^retired_'"
        )
        before = str(self._ask(functions)).split(",")
        applied = await asyncio.to_thread(self.code.migrate, self.dsn)
        changed = {one.split()[0] for one in {*before} ^ {*str(self._ask(functions)).split(",")}}
        if applied or changed:
            self.outcome.troubles.append(
                f"an older `db migrate` took back: {', '.join([*applied, *sorted(changed)])}"
            )

    async def _kill(self, supervisor: subprocess.Popen[bytes]) -> None:
        """Kill the worker of an old supervisor, which must start another."""
        await self._until(lambda: len(self._known(supervisor)) == 1, "a worker is known")
        [pid] = self._known(supervisor)
        self._killed.add(pid)
        faults.kill(*faults.tree(pid))
        self.outcome.kills += 1
        at = time.time()
        await self._until(lambda: self._ran([supervisor], at) > 0, "a killed worker comes back")

    # Processes --------------------------------------------------------------------------------

    def _start(self, code: Code, *arguments: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(code.source), str(ROOT)])
        environment = {
            **code.environment(self.dsn),
            **SETTINGS,
            "PYTHONPATH": path,
            "UPGRADE_SINK": str(self.sink),
        }
        with (self.sink / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                faults.tied([sys.executable, *arguments]),
                cwd=self.sink,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _worker(self, code: Code) -> subprocess.Popen[bytes]:
        return self._start(code, "-m", "laneway", "worker", f"{APP}:lw", "--processes=1")

    def _log(self, process: subprocess.Popen[bytes]) -> str:
        return (self.sink / f"{self._processes.index(process)}.log").read_text()[-20000:]

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not await asyncio.to_thread(is_so):
            if time.monotonic() > deadline:
                logs = "\n".join(self._log(process)[-1500:] for process in self._processes)
                raise Stuck(f"after {WITHIN_S:.0f} s not yet: {what}\n{logs}")
            await asyncio.sleep(0.1)

    # Submits by SQL ---------------------------------------------------------------------------

    def _submit_by_sql(self) -> None:
        """Submit one job after the other and record how long each waited."""
        with self._connected() as conn:
            n = 0
            while not (self.sink / "over").exists():
                n += 1
                began = time.monotonic()
                row = conn.execute(
                    "select * from laneway.submit('work', %s)",
                    [json.dumps({"op": f"sql-{n}", "ms": 5})],
                ).fetchone()
                assert row is not None
                self._doors.append((str(row[0]), time.monotonic() - began))
                time.sleep(0.01)

    # Observations -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(self.dsn, autocommit=True, application_name="upgrade") as conn:
            yield conn

    def _ask(self, query: str, *params: Any) -> Any:
        with self._connected() as conn:
            cursor = conn.execute(query.encode(), params)
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def _waiting(self) -> int:
        """Count unfinished jobs in one statement: they move from table to table."""
        tables = ("ready", "delayed", "lease", "key_waiters")
        counts = (f"(select count(*) from laneway.{table})" for table in tables)
        return int(self._ask(f"select {' + '.join(counts)}"))

    def _notes(self, kind: str) -> list[dict[str, Any]]:
        files = sorted(self.sink.glob(f"{kind}-*.jsonl"))
        lines = [line for file in files for line in file.read_text().splitlines(keepends=True)]
        # The last line of a file may be incomplete.
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def _runs(self) -> list[dict[str, Any]]:
        return self._notes("run")

    def _known(self, supervisor: subprocess.Popen[bytes]) -> list[int]:
        """The child processes of a supervisor that run handlers."""
        below = faults.tree(supervisor.pid)
        with self._connected() as conn:
            rows = conn.execute(
                "select pid from laneway.workers where pid = any (%s) and stopped_at is null",
                [below],
            ).fetchall()
        return [row[0] for row in rows]

    def _ran(self, supervisors: list[subprocess.Popen[bytes]], since: float) -> int:
        below = {pid for one in supervisors for pid in faults.tree(one.pid)}
        return sum(run["pid"] in below and run["at"] > since for run in self._runs())

    def _judge(self) -> None:
        with self._connected() as conn:
            ended: dict[str, tuple[str, int]] = {
                str(job): (status, attempt)
                for job, status, attempt in conn.execute(
                    "select id, status, attempt from laneway.jobs_view"
                ).fetchall()
            }
        notes = self._notes("submit")
        submits = [(note["job"], note["wait_s"]) for note in notes] + self._doors
        runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for run in sorted(self._runs(), key=lambda run: float(run["at"])):
            runs[run["job"]].append(run)
        outcome = self.outcome
        outcome.jobs = len(ended)
        # The first submits of the client wait for its connections, not for the upgrade.
        waits = [note["wait_s"] for note in notes if note["at"] >= self._upgrade_at]
        waits += [wait for _, wait in self._doors]
        if not waits:
            outcome.troubles.append("no submit was measured during the upgrade")
        outcome.longest_submit_wait_s = max(waits, default=0.0)
        for job, _ in submits:
            status, attempt = ended.get(job, ("missing", 0))
            if status != "completed":
                outcome.lost.append(f"{job} is {status} after {attempt} attempts")
            # Only a killed process may leave a job to another, and some jobs request another run.
            ended_by_itself = (
                run
                for run in runs[job][:-1]
                if run["pid"] not in self._killed and not run.get("again")
            )
            if any(ended_by_itself):
                outcome.doubled.append(f"{job} ran {len(runs[job])} times")
