"""Servers as processes of their own: replicas of Laneway's, and the bare one beside them."""

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

_SAYS = re.compile(r"serving http://127\.0\.0\.1:(\d+)")
_SAYS_REMOTE = re.compile(r"serving remote workers on 127\.0\.0\.1:(\d+)")
OWN = ("-m", "laneway", "server", "--port=0")
BARE = ("-m", "bench.api.bare")


@dataclass(frozen=True, slots=True)
class Replica:
    """A server that answers."""

    port: int
    pid: int
    # For remote workers; 0: there is none.
    grpc_port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def rss_mb(self) -> float:
        """Its memory, with that of its children."""
        own = psutil.Process(self.pid)
        return float(sum(p.memory_info().rss for p in [own, *own.children(recursive=True)])) / 1e6


@contextmanager
def serving(
    database: Database, command: Sequence[str] = OWN, **variables: str
) -> Iterator[Replica]:
    """Starts a server; it is stopped at the end."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**environment(database), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=(database.home / "replicas.log").open("ab"),
        text=True,
    )
    assert process.stdout is not None
    try:
        grpc_port = 0
        for line in process.stdout:
            if (remote := _SAYS_REMOTE.search(line)) is not None:
                grpc_port = int(remote[1])
            found = _SAYS.search(line)
            if found is not None:
                yield Replica(int(found[1]), process.pid, grpc_port)
                break
        else:
            said = (database.home / "replicas.log").read_text(errors="replace")[-2000:]
            raise AssertionError(f"{command} did not serve:\n{said}")
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def make_token(database: Database, name: str = "bench", role: str = "operator") -> str:
    """A token of a principal of its own that has the role everywhere."""

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
