"""C19: a replica is killed with its streams open; the readers continue at the other one."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg

from laneway.domain.token import new_secret
from laneway.errors import LanewayError
from laneway.store.database import run_sync
from laneway.store.jobs import reprioritize
from laneway.testing import faults
from tests.crash.processes import ROOT, worker_environment
from tests.crash.row_run import RowRun, wait_until

STREAMS, KILLS = 200, 3
WORKERS = 2
ITEMS, ITEM_MS = 40, 150
# Jobs that wait while the others run; a slow transaction changes them and commits late.
LATER, WAIT_S = 5, 6.0
LATE_S, GAP_S = 0.3, 0.02
ENDS = ("job.completed", "job.failed", "job.cancelled")


class Replica:
    """A server process that restarts on the same port after a kill."""

    def __init__(self, run: RowRun, dsn: str | None = None) -> None:
        self._dsn = dsn or run.dsn
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._run = run
        self.start()

    def start(self) -> None:
        run = self._run
        with (run.sink / f"server-{self.port}.log").open("ab") as log:
            self.process = subprocess.Popen(
                faults.tied([sys.executable, "-m", "laneway", "server", f"--port={self.port}"]),
                cwd=ROOT,
                env={
                    **worker_environment(self._dsn, run.sink),
                    **run.worker_settings,
                    "LANEWAY_MAX_STREAMS_PER_TOKEN": "1000",
                    "LANEWAY_MAX_CONNECTIONS_PER_ADDRESS": "1000",
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        faults.kill(*faults.tree(self.process.pid))
        self.process.wait()

    def end(self) -> None:
        faults.end_all(faults.tree(self.process.pid))
        self.process.wait()


@dataclass
class Reader:
    """Follows one job to its end, at any replica."""

    job: str
    urls: list[str]
    token: str
    heard: list[tuple[int, str]] = field(default_factory=list)
    resumed: int = 0

    async def read(self, client: httpx2.AsyncClient) -> None:
        turn = 0
        while not (self.heard and self.heard[-1][1] in ENDS):
            url = self.urls[turn % len(self.urls)]
            turn += 1
            headers = {"Authorization": f"Bearer {self.token}"}
            if self.heard:
                headers["Last-Event-ID"] = str(self.heard[-1][0])
                self.resumed += 1
            try:
                address = f"{url}/jobs/{self.job}/stream"
                async with client.stream("GET", address, headers=headers) as answer:
                    if answer.status_code == 200:
                        await self._follow(answer)
            except httpx2.HTTPError:
                # The replica was killed: reconnect to the other at once.
                await asyncio.sleep(0.05)

    async def _follow(self, answer: Any) -> None:
        event: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif "data" in event:
                assert json.loads(event["data"])["id"] == self.job
                number = int(event["id"].partition(".")[0])
                self.heard.append((number, event["event"]))
                event = {}
            else:
                event = {}


async def inject(run: RowRun) -> None:
    token = token_of(run, "viewer")
    replicas = [Replica(run), Replica(run)]
    try:
        workers = [run.start_worker() for _ in range(WORKERS)]
        await run.ready(*workers)
        async with run.client() as client, httpx2.AsyncClient(timeout=30, limits=many()) as http:
            await serving(http, replicas)
            jobs = [
                run.job("tracked", items=ITEMS, ms=ITEM_MS) for _ in range(run.count(STREAMS, 20))
            ]
            ids = await run.submit(client, *jobs)
            later = [run.job("tracked", {"delay": WAIT_S}, items=1, ms=1) for _ in range(LATER)]
            waiting = await run.submit(client, *later)
            urls = [replica.url for replica in replicas]
            readers = [Reader(job, urls, token) for job in (*ids, *waiting)]
            reading = [asyncio.create_task(reader.read(http)) for reader in readers]
            is_over = threading.Event()
            late_commits = asyncio.create_task(
                asyncio.to_thread(_commit_late, run.dsn, waiting, is_over)
            )
            for number in range(run.count(KILLS)):
                await wait_until(
                    lambda: len([r for r in readers if r.heard]) == len(readers), 30, "all read"
                )
                await asyncio.sleep(run.random.uniform(0.3, 1.0))
                doomed = replicas[number % 2]
                doomed.kill()
                run.fault(kind="kill server", port=doomed.port)
                doomed.start()
                # Wait, so that readers never lose both replicas at once.
                await serving(http, [doomed])
            await run.drain(DRAIN_S)
            is_over.set()
            await late_commits
            done, late = await asyncio.wait(reading, timeout=20)
            for task in late:
                task.cancel()
            for task in done:
                task.result()
        _judge(run, readers, len(late))
    finally:
        for replica in replicas:
            replica.end()


def _commit_late(dsn: str, jobs: list[str], is_over: threading.Event) -> None:
    """Change waiting jobs and commit late, after events with higher numbers were sent."""
    with psycopg.connect(dsn) as conn:
        for turn, job in enumerate(cycle(jobs)):
            if is_over.wait(GAP_S):
                return
            with conn.transaction(), suppress(LanewayError):
                run_sync(conn, reprioritize(UUID(job), turn % 100))
                is_over.wait(LATE_S)


# All jobs run in turn in the slots of two workers.
DRAIN_S = 60.0


def many() -> httpx2.Limits:
    """Limits with one connection per reader."""
    return httpx2.Limits(max_connections=None)


async def serving(http: httpx2.AsyncClient, replicas: list[Replica]) -> None:
    """Wait until each replica responds."""
    for replica in replicas:
        for _ in range(600):
            try:
                if (await http.get(f"{replica.url}/readyz")).status_code == 200:
                    break
            except httpx2.HTTPError:
                pass
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("a server did not start")


def token_of(run: RowRun, role: str) -> str:
    """Create a token with the role everywhere."""
    who, secret = uuid4(), new_secret()
    run.conn.execute(
        "insert into laneway.principals (id, name, kind, created_by)"
        " values (%s, 'reader', 'service', 'crash')",
        [who],
    )
    run.conn.execute(
        "insert into laneway.role_grants (id, principal_id, role, scope, granted_by)"
        " values (%s, %s, %s, 'all', 'crash')",
        [uuid4(), who, role],
    )
    run.conn.execute(
        "insert into laneway.tokens (id, principal_id, name, hint, digest, created_by)"
        " values (%s, %s, 'crash', %s, %s, 'crash')",
        [uuid4(), who, secret.hint, secret.digest],
    )
    return secret.text


def find_gaps(run: RowRun, readers: list[Reader]) -> tuple[int, int, int]:
    """Count missed events, streams with repeated events, and streams without exactly one end."""
    log: dict[str, list[int]] = {}
    for job, number in run.conn.execute(
        "select j.id::text, e.id from laneway.events e join laneway.jobs j using (seq)"
        " order by e.id"
    ):
        log.setdefault(job, []).append(number)
    gaps = repeated = wrong_ends = 0
    for reader in readers:
        heard = [number for number, _ in reader.heard]
        logged = [number for number in log.get(reader.job, []) if number >= min(heard, default=0)]
        gaps += len(set(logged) - set(heard))
        repeated += len(heard) - len(set(heard)) + (heard != sorted(heard))
        ends = [name for _, name in reader.heard if name in ENDS]
        wrong_ends += not (ends == ["job.completed"] and reader.heard[-1][1] == "job.completed")
    return gaps, repeated, wrong_ends


def _judge(run: RowRun, readers: list[Reader], late: int) -> None:
    result = run.result
    gaps, repeated, wrong_ends = find_gaps(run, readers)
    events = sum(len(reader.heard) for reader in readers)
    resumed = sum(reader.resumed for reader in readers)
    result.figures |= {"stream_events": events, "streams_resumed": resumed, "stream_gaps": gaps}
    result.must("readers at the end", f"{late} late", held=late == 0)
    result.must("streams resumed", resumed, held=resumed >= len(readers) // 2)
    result.must("events missed", f"{gaps} of {events + gaps}", held=gaps == 0)
    result.must("events repeated or out of order", repeated, held=repeated == 0)
    result.must("streams without exactly one end", wrong_ends, held=wrong_ends == 0)


def check(run: RowRun) -> None:
    # A watch is settled only while a reader is connected: one whose streams have ended may stay.
    settled = run.ask("select count(*) from laneway.watches where settled")
    run.result.must("watches settled", settled, held=settled > 0)
