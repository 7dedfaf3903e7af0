"""A PostgreSQL for each row, copied from one that is created and migrated once."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg

from laneway.embedded.postgres import EmbeddedPostgres
from laneway.store.migrate import migrate

SETTINGS = {
    "max_connections": "100",
    "max_wal_size": "256MB",
    "log_min_messages": "warning",
    # In the data directory, so that a killed server leaves no shared memory segment.
    "dynamic_shared_memory_type": "mmap",
}
HASTY = {"fsync": "off", "full_page_writes": "off"}
# The intervals of every lane in these tests.
_PREPARE = """
insert into laneway.worker_lanes (name, job_types, max_slots)
values ('narrow', '{narrow}', 3),
       ('isolated', '{isolated,ledger_child}', null),
       ('fragile_exit', '{suicide_exit}', null),
       ('fragile_kill', '{suicide_kill}', null);
insert into laneway.limits (name, max_concurrent)
values ('scarce', 3), ('dear', 2), ('call', 2);
update laneway.worker_lanes
   set lease_seconds = 2, poll_interval_ms = 250, stale_timeout_minutes = 1;
"""


class Clusters:
    """Data directories in one temporary directory that is removed at the end."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seed = home / "seed"
        with EmbeddedPostgres(self._seed, settings={**SETTINGS, **HASTY}) as seed:
            migrate(seed.dsn)
            with psycopg.connect(seed.dsn, autocommit=True) as conn:
                conn.execute(_PREPARE)

    @classmethod
    @contextlib.contextmanager
    def open(cls) -> Iterator[Clusters]:
        home = Path(tempfile.mkdtemp(prefix="lw-crash-"))
        home.chmod(0o711)  # as root, the server runs as another account
        try:
            yield cls(home)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    @contextlib.contextmanager
    def copy(self, name: str, *, is_durable: bool = False) -> Iterator[EmbeddedPostgres]:
        """Run a copy of the server; `is_durable`: it waits for the disk, as in production."""
        path = self._home / name
        settings: Mapping[str, str] = SETTINGS if is_durable else {**SETTINGS, **HASTY}
        subprocess.run(["cp", "-a", str(self._seed), str(path)], check=True)
        with EmbeddedPostgres(path, settings=settings) as postgres:
            yield postgres

    def sink(self, name: str) -> Path:
        """The directory in which the handlers of one row record events."""
        path = self._home / f"{name}-sink"
        path.mkdir()
        return path


def server_errors(postgres: EmbeddedPostgres) -> list[str]:
    """Deadlocks and worse from the server's log."""
    if not os.path.exists(postgres.log_path):
        return []
    lines = postgres.log_path.read_text(errors="replace").splitlines()
    return [line for line in lines if "deadlock detected" in line or "PANIC" in line]
