"""Remote workers, and the replicas that send them jobs."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from laneway.testing import faults
from tests.crash.processes import ROOT, WorkerProcess, worker_environment
from tests.crash.row_run import READY_S, RowRun, wait_until
from tests.crash.rows.c19_streams import token_of


class GrpcReplica:
    """A server process that restarts on the same port after a kill."""

    def __init__(self, run: RowRun) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.log = run.sink / f"replica-{self.port}.log"
        self._run = run
        self.start()

    def start(self) -> None:
        command = [*("-m", "laneway", "server", "--port=0"), "--grpc", f"--grpc-port={self.port}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                faults.tied([sys.executable, *command]),
                cwd=ROOT,
                env=worker_environment(self._run.dsn, self._run.sink),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_serving(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        faults.kill(*faults.tree(self.process.pid))
        self.process.wait()
        self._run.fault(kind="kill replica", port=self.port)

    def end(self) -> None:
        faults.end_all(faults.tree(self.process.pid))
        self.process.wait()


class RemoteProcess(WorkerProcess):
    """A worker with addresses and a token, without a database."""

    def __init__(self, sink: Path, addresses: list[str], token: str, app: str) -> None:
        environment = worker_environment("", sink)
        del environment["LANEWAY_DATABASE_URL"], environment["CRASH_SINK_DSN"]
        self.is_supervised = False
        self.log = sink / f"remote-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                faults.tied(
                    [
                        *(sys.executable, "-m", "laneway", "remote-worker", app),
                        *("--server", ",".join(addresses)),
                    ]
                ),
                cwd=ROOT,
                env={**environment, "LANEWAY_TOKEN": token},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self.process.pid


class RemoteFleet:
    """Replicas, and remote workers that know all of them and start with different ones."""

    def __init__(self, run: RowRun, replicas: int = 2) -> None:
        self._run = run
        self._token = token_of(run, "remote_worker")
        self.replicas = [GrpcReplica(run) for _ in range(replicas)]
        self.workers: list[RemoteProcess] = []

    async def open(self, workers: int) -> None:
        await self.serving(*self.replicas)
        for number in range(workers):
            self.start_worker(number)
        await self._run.ready(*self.workers)

    def start_worker(self, number: int) -> RemoteProcess:
        turn = number % len(self.replicas)
        addresses = [one.address for one in (*self.replicas[turn:], *self.replicas[:turn])]
        worker = RemoteProcess(self._run.sink, addresses, self._token, self._run.app)
        self.workers.append(worker)
        # The run ends all remaining workers.
        self._run.workers.append(worker)
        return worker

    async def serving(self, *replicas: GrpcReplica) -> None:
        for replica in replicas:
            await wait_until(lambda one=replica: one.is_serving, READY_S, "a replica serves")  # type: ignore[misc]

    def close(self) -> None:
        for replica in self.replicas:
            replica.end()
