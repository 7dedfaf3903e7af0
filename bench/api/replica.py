"""Servers in separate processes: replicas of Laneway, and the bare server."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from bench.server import Database
from bench.workers import ROOT, environment
from laneway.config.settings import Settings
from laneway.control import access
from laneway.store.database import Database as Pool

_ADDRESS = re.compile(r"serving http://127\.0\.0\.1:(\d+)")
_REMOTE_ADDRESS = re.compile(r"serving remote workers on 127\.0\.0\.1:(\d+)")
OWN = ("-m", "laneway", "server", "--port=0")
BARE = ("-m", "bench.api.bare")


@dataclass(frozen=True, slots=True)
class Replica:
    """A running server."""

    port: int
    pid: int
    # The port for remote workers; 0: none.
    grpc_port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def rss_mb(self) -> float:
        """The memory of the server and its children."""
        own = psutil.Process(self.pid)
        return float(sum(p.memory_info().rss for p in [own, *own.children(recursive=True)])) / 1e6


@contextmanager
def serving(
    database: Database, command: Sequence[str] = OWN, **variables: str
) -> Iterator[Replica]:
    """Run a server until the block ends."""
    with (database.home / "replicas.log").open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**environment(database), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        grpc_port = 0
        for line in process.stdout:
            if (remote := _REMOTE_ADDRESS.search(line)) is not None:
                grpc_port = int(remote[1])
            found = _ADDRESS.search(line)
            if found is not None:
                yield Replica(int(found[1]), process.pid, grpc_port)
                break
        else:
            output = (database.home / "replicas.log").read_text(errors="replace")[-2000:]
            raise AssertionError(f"{command} did not start:\n{output}")
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def make_token(database: Database, name: str = "bench", role: str = "operator") -> str:
    """Create a principal with the role everywhere; return its token."""

    async def make() -> str:
        pool = Pool(database.dsn, Settings.load(database_url=database.dsn))
        try:
            await access.create_principal(pool, name, "service", by="bench")
            await access.grant_role(pool, name, role, "all", by="bench")
            made = await access.create_token(pool, name, "bench", by="bench")
            return made.secret
        finally:
            await pool.close()

    return asyncio.run(make())
