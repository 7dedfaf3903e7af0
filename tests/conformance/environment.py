"""The environment of the scenarios for one kind of worker: database, server, shared worker."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from laneway import Laneway
from laneway.domain.token import new_secret
from tests.conformance.processes import STARTERS, Process, ServerProcess, WorkerOptions
from tests.conformance.scenario import Scenario

PATIENCE_S = 60.0
SHARED = "shared"
# Each lane lists one job type per handler; a lane's row overrides the handler's declaration.
HANDLERS = (
    *("echo", "fail", "again", "snooze", "give_up", "hold", "deaf", "resume", "steps", "report"),
    *("slow", "sleep", "not_json", "facts", "typed", "limited", "planned", "patient", "chatty"),
    *("waits", "gather"),
)
IN_FLIGHT = 50


class ScenarioFailed(Exception):
    """An expected event of a scenario did not happen."""


async def wait_until(
    condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S
) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise ScenarioFailed(f"not within {within_s:g} s: {what}")
        await asyncio.sleep(0.1)


class Environment:
    """One database and its processes, which end with it."""

    def __init__(self, kind: str, dsn: str, home: Path) -> None:
        self.kind = kind
        self.dsn = dsn
        self.home = home
        self.lw = Laneway(dsn)
        self.conn = psycopg.connect(dsn, autocommit=True, application_name="conformance")
        self.token = ""
        self.servers: list[ServerProcess] = []
        self.processes: list[Process] = []
        self._number = itertools.count(1)
        # The most processes that start at once; more would slow each other down.
        self.starting = asyncio.Semaphore(3)

    @property
    def is_remote(self) -> bool:
        return self.kind != "in-process"

    def prepare(self, scenarios: Sequence[Scenario]) -> None:
        """Create the lanes of the scenarios, and a token for exactly these lanes."""
        lanes: dict[str, dict[str, Any]] = {SHARED: {}}
        lanes |= {one.slug: one.lane for one in scenarios if one.has_own_lane}
        for name, settings in lanes.items():
            self.conn.execute(
                "insert into laneway.worker_lanes (name, job_types, max_slots, poll_interval_ms)"
                " values (%s, %s, null, 250)",
                [name, [f"{name}.{handler}" for handler in HANDLERS]],
            )
            for field, value in settings.items():
                self.change_lane(name, field, value)
        self.conn.execute(
            "insert into laneway.limits (name, max_concurrent) values ('conformance', 1)"
        )
        self.token = self._make_token([*lanes, "analysis"])

    def change_lane(self, lane: str, field: str, value: Any) -> None:
        query = f"update laneway.worker_lanes set {field} = %s where name = %s"
        self.conn.execute(query.encode(), [value, lane])

    def renewed(self, lane: str) -> int:
        """Count the leases of the lane with more than half of their time left."""
        row = self.conn.execute(
            "select count(*) from laneway.lease l join laneway.worker_lanes n on n.name = l.lane"
            " where n.name = %s and l.lease_until > clock_timestamp()"
            "     + make_interval(secs => n.lease_seconds / 2.0)",
            [lane],
        ).fetchone()
        assert row is not None
        count: int = row[0]
        return count

    def has_stream(self, worker: Process) -> bool:
        """Whether a server counts one of the worker's processes as live."""
        row = self.conn.execute(
            "select count(*) from laneway.workers where pid = any (%s) and stopped_at is null",
            [worker.pids],
        ).fetchone()
        assert row is not None
        return bool(row[0])

    def _make_token(self, lanes: list[str]) -> str:
        who, secret = uuid4(), new_secret()
        self.conn.execute(
            "insert into laneway.principals (id, name, kind, created_by)"
            " values (%s, 'robot', 'service', 'tests')",
            [who],
        )
        self.conn.execute(
            "insert into laneway.roles (name, permissions, updated_by)"
            " values ('trusted', '{workers:claim,workers:declare}', 'tests')"
        )
        self.conn.execute(
            "insert into laneway.role_grants (id, principal_id, role, scope, lanes, granted_by)"
            " values (%s, %s, 'trusted', 'all', %s, 'tests')",
            [uuid4(), who, lanes],
        )
        self.conn.execute(
            "insert into laneway.tokens (id, principal_id, name, hint, digest, created_by)"
            " values (%s, %s, 'conformance', %s, %s, 'tests')",
            [uuid4(), who, secret.hint, secret.digest],
        )
        return secret.text

    # Processes --------------------------------------------------------------------------------

    async def start_server(self, port: int | None = None) -> ServerProcess:
        async with self.starting:
            log = self.home / f"server-{next(self._number)}.log"
            server = ServerProcess(self.dsn, log, port)
            self.processes.append(server)
            await self._wait_until_up(server, lambda: server.is_serving, "a server serves")
            return server

    async def start_worker(
        self, scenario: Scenario | None, lanes: Sequence[str], addresses: str
    ) -> Process:
        """Start a worker for one scenario, or the shared one; return once it has registered."""
        lane = lanes[0]
        options = WorkerOptions(
            dsn=self.dsn,
            addresses=addresses,
            token=self.token,
            lanes=",".join(lanes),
            log=self.log_of(lane),
            gates=self.home,
            in_flight=(scenario.in_flight if scenario else None) or IN_FLIGHT,
            grace_ms=scenario.grace_ms if scenario else 10_000,
        )
        async with self.starting:
            before = self._known(lane)
            log = self.home / f"worker-{lane}-{next(self._number)}.log"
            worker = STARTERS[self.kind](options, log)
            self.processes.append(worker)
            await self._wait_until_up(
                worker, lambda: self._known(lane) > before, f"a worker of {lane} is known"
            )
            return worker

    def log_of(self, lane: str) -> Path:
        """The file in which the handlers of a worker record events."""
        return self.home / f"handlers-{lane}.jsonl"

    def _known(self, lane: str) -> int:
        """Count the registered workers of the lane's types."""
        row = self.conn.execute(
            "select count(*) from laneway.workers where %s = any (job_types)", [f"{lane}.echo"]
        ).fetchone()
        return int(row[0]) if row else 0

    async def _wait_until_up(
        self, process: Process, condition: Callable[[], bool], what: str
    ) -> None:
        def look() -> bool:
            if process.code is not None:
                raise ScenarioFailed(f"ended with code {process.code}:\n{process.output()}")
            return condition()

        await wait_until(look, what)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        """Start what all scenarios share; yield the addresses of its servers."""
        try:
            if self.is_remote:
                self.servers.append(await self.start_server())
            yield ",".join(server.address for server in self.servers)
        finally:
            for process in self.processes:
                process.end()
            await self.lw.close()
            self.conn.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of the handlers; an incomplete line is ignored."""
    if not path.exists():
        return []
    lines = path.read_text("utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]
