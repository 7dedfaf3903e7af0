"""A server and remote workers in separate processes."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from typing import Self

from bench.api.replica import OWN, make_token, serving
from bench.server import Database
from bench.workers import Workers, environment, start


class RemoteWorkers(Workers):
    """One process with `processes` streams, ready on entry; each runs `concurrency` jobs."""

    def __init__(self, database: Database, processes: int = 1, concurrency: int = 1000) -> None:
        super().__init__(database, processes, concurrency)
        self._stack = ExitStack()
        self._address = ""
        self._token = ""

    def __enter__(self) -> Self:
        with self._stack:
            replica = self._stack.enter_context(
                serving(self._database, (*OWN, "--grpc", "--grpc-port=0"))
            )
            self._address = f"127.0.0.1:{replica.grpc_port}"
            self._token = make_token(self._database, f"workers{replica.pid}", "remote_worker")
            super().__enter__()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self._stack:
            super().__exit__(*error)

    def _start_all(self, log: int, parent_pipe: int) -> list[subprocess.Popen[bytes]]:
        variables = {**environment(self._database), "LANEWAY_TOKEN": self._token}
        del variables["DATABASE_URL"]
        numbers = str(self._count), str(self._concurrency)
        command = ["bench.rpc.streams", self._address, *numbers]
        return [start(command, variables, log, parent_pipe)]

    def _ready(self) -> int:
        return int(
            self._database.value(
                "select count(*) from laneway.workers"
                " where stopped_at is null and job_types <> '{}'"
            )
        )

    def warm_up(self) -> None:
        """Run a few jobs; one process serves all streams, so not every stream needs one."""
        self._warm_up(1)
