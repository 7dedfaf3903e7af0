"""Faults under flows: workers and operators are killed, workers freeze, PostgreSQL restarts."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from laneway.testing import faults
from tests.crash.processes import ROOT, WorkerProcess, worker_environment
from tests.crash.row_run import READY_S, RowRun, wait_until

FREEZE_S = 3.0


class Operators:
    """Processes that approve, cancel, retry and send events; a killed one is replaced."""

    def __init__(self, run: RowRun, count: int) -> None:
        self._run = run
        self._count = count
        self._numbers = itertools.count(1)
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        # The events that they have sent, stored in the same transactions.
        self._run.conn.execute("create table crash.sent (op text, n integer, primary key (op, n))")
        self._processes = [self._start() for _ in range(self._count)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def kill_one(self) -> None:
        """Kill one of them and start another."""
        place = self._run.random.randrange(self._count)
        process = self._processes[place]
        faults.kill(process.pid)
        self._run.fault(kind="operator", pids=[process.pid])
        process.wait()
        self._processes[place] = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        name = f"operator-{next(self._numbers)}"
        with (self._run.sink / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                faults.tied([sys.executable, "-m", "tests.crash.flow_operator", name]),
                cwd=ROOT,
                env=worker_environment(self._run.dsn, self._run.sink),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


class FlowFaults:
    """Faults of several kinds, one after the other."""

    def __init__(self, run: RowRun, workers: list[WorkerProcess], operators: Operators) -> None:
        self._run = run
        self._workers = workers
        self._operators = operators

    def shuffled(self, **counts: int) -> list[str]:
        """The kinds, each so often, in random order."""
        kinds = [kind for kind, count in counts.items() for _ in range(count)]
        self._run.random.shuffle(kinds)
        return kinds

    async def inject(self, kinds: list[str], every_s: float) -> None:
        """Inject these faults at intervals."""
        began = time.monotonic()
        for n, kind in enumerate(kinds, 1):
            await asyncio.sleep(max(0.0, began + n * every_s - time.monotonic()))
            if kind == "kill":
                await self._kill()
            elif kind == "operator":
                self._operators.kill_one()
            elif kind == "freeze":
                await self._freeze()
            else:
                await self._restart()

    async def _kill(self) -> None:
        place = await self._busy()
        worker = self._workers[place]
        self._run.kill(worker, worker.pid)
        worker.process.wait()
        self._workers[place] = self._run.start_worker()

    async def _freeze(self) -> None:
        """Stop a worker until its leases have lapsed, then let it continue."""
        worker = self._workers[await self._busy()]
        pids = worker.tree()
        faults.pause(*pids)
        self._run.fault(kind="freeze", pids=pids)
        await asyncio.sleep(FREEZE_S)
        faults.resume(*pids)

    async def _restart(self) -> None:
        self._run.conn.close()
        await asyncio.to_thread(self._run.postgres.restart, "immediate")
        self._run.fault(kind="restart")

    async def _busy(self) -> int:
        """The place of a random worker that runs jobs; another one must be left to recover."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [n for n, each in enumerate(self._workers) if self._run.is_at_work(each)]
            return len(found) >= 2

        await wait_until(look, READY_S, "the workers are ready")
        return self._run.random.choice(found)
