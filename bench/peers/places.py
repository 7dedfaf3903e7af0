"""The place of a system's jobs during one run: a fresh database, or an emptied Redis."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
import psycopg
from psycopg import sql

from bench.peers.programs import run_program
from bench.peers.system import CannotInstall, System
from bench.server import Conn, Server


@dataclass(frozen=True, slots=True)
class Counters:
    """The work of a place so far; Redis has no WAL."""

    cpu_s: float
    wal_bytes: int


class Place(Protocol):
    """One system's jobs."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables that lead a program here."""

    def is_settled(self) -> bool:
        """Whether no job waits or runs."""

    def counters(self) -> Counters: ...

    def clean_up(self) -> None:
        """Do the work of autovacuum and the checkpointer now, instead of during a run."""

    def analyze(self) -> None:
        """Let the planner know the jobs that were just submitted."""

    def hold_snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Keep a transaction with an old snapshot open."""


def cpu_s(process: psutil.Process) -> float:
    """The processor time of a process and of its children, ended ones included."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system
    return total


def _url(dsn: str, name: str) -> str:
    """The same server with another database."""
    head, _, tail = dsn.partition("@/")
    return f"{head}@/{name}?{tail.partition('?')[2]}"


class PostgresPlace:
    """A database for one system."""

    def __init__(self, postgres: Postgres, system: System, name: str) -> None:
        self.name = name
        self.url = _url(postgres.server.dsn, name)
        self._postgres = postgres
        self._settled = f"select {system.settled}".encode()
        self._conn: Conn = psycopg.connect(self.url, autocommit=True, prepare_threshold=0)
        self._own_transactions = 0

    @property
    def variables(self) -> dict[str, str]:
        return {"DATABASE_URL": self.url}

    def value(self, query: str) -> Any:
        return self._value(query.encode())

    def _value(self, query: bytes) -> Any:
        self._own_transactions += 1
        row = self._conn.execute(query).fetchone()
        assert row is not None
        return row[0]

    def execute(self, statement: str) -> None:
        self._own_transactions += 1
        self._conn.execute(statement.encode())

    def is_settled(self) -> bool:
        return bool(self._value(self._settled))

    def counters(self) -> Counters:
        position = self._postgres.value("select pg_current_wal_lsn() - '0/0'::pg_lsn")
        return Counters(cpu_s(self._postgres.process), int(position))

    def transactions(self) -> int:
        """The transactions of this database without our own.

        The server learns of those of an open session up to ten seconds after it became idle.
        """
        return self._transactions() - self._own_transactions

    def await_sessions_ended(self) -> None:
        """Wait until the server has noticed that all clients have gone."""
        deadline = time.monotonic() + 10
        while self._sessions() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _sessions(self) -> int:
        return int(
            self._postgres.value(
                "select count(*) - 1 from pg_stat_activity where datname = %s"
                " and backend_type = 'client backend'",
                self.name,
            )
        )

    def _transactions(self) -> int:
        # Without this, the server learns of them a second or more later.
        self._value(b"select pg_stat_force_next_flush()::text")
        return int(
            self._postgres.value(
                "select xact_commit + xact_rollback from pg_stat_database where datname = %s",
                self.name,
            )
        )

    def clean_up(self) -> None:
        before = self._transactions() - self._own_transactions
        self._conn.execute("vacuum (analyze)")
        self._conn.execute("checkpoint")
        # A vacuum has a transaction for each table.
        self._own_transactions += self._transactions() - self._own_transactions - before

    def analyze(self) -> None:
        self.execute("analyze")

    @contextlib.contextmanager
    def hold_snapshot(self) -> Iterator[None]:
        with psycopg.connect(self.url) as conn:
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            conn.execute("select count(*) from pg_class")
            yield

    def close(self) -> None:
        self._conn.close()


class Postgres:
    """The one server of all systems that use PostgreSQL."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._conn: Conn = psycopg.connect(server.dsn, autocommit=True)
        self._templates: set[str] = set()
        pid = int(self.value("select pg_backend_pid()"))
        parent = psutil.Process(pid).parent()
        assert parent is not None
        self.process = parent

    def value(self, query: str, *params: object) -> Any:
        row = self._conn.execute(query.encode(), params).fetchone()
        assert row is not None
        return row[0]

    def settings(self) -> dict[str, str]:
        """The settings that differ from PostgreSQL's defaults."""
        rows = self._conn.execute(
            "select name, current_setting(name) from pg_settings where source in"
            " ('command line', 'configuration file') and name !~ 'dir|file|socket|port|log|lc_'"
        ).fetchall()
        return {"version": str(self.value("show server_version")), **dict(rows)}

    def create(self, name: str, template: str | None = None) -> None:
        self.drop(name)
        self._conn.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template or "template0")
            )
        )

    def drop(self, name: str) -> None:
        self._conn.execute(
            sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
        )

    def template(self, system: System) -> str:
        """A database with the system's empty tables; created at the first call."""
        name = f"tables_{system.schema or system.name}".replace("-", "_").replace(" ", "_")
        if name not in self._templates:
            self.create(name)
            run_program(system, {"DATABASE_URL": _url(self.server.dsn, name)}, "prepare")
            self._end_sessions(name)
            self._templates.add(name)
        return name

    def _end_sessions(self, name: str) -> None:
        """A database with sessions cannot be copied."""
        deadline = time.monotonic() + 10
        while self.value(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = %s", name
        ):
            assert time.monotonic() < deadline, name
            time.sleep(0.05)

    @contextlib.contextmanager
    def place(self, system: System) -> Iterator[PostgresPlace]:
        self.create("run", self.template(system))
        place = PostgresPlace(self, system, "run")
        try:
            yield place
        finally:
            place.close()
            self.drop("run")

    @contextlib.contextmanager
    def kept_place(self, system: System, name: str) -> Iterator[PostgresPlace]:
        """A database that stays after the run."""
        place = PostgresPlace(self, system, name)
        try:
            yield place
        finally:
            place.close()

    def close(self) -> None:
        self._conn.close()


def redis_program() -> str:
    """The path of redis-server; raise CannotInstall without it."""
    found = shutil.which("redis-server")
    if found is None:
        raise CannotInstall("redis-server (Debian package redis-server) is not installed")
    return found


class Redis:
    """A Redis server without persistence, on a port of loopback; starts on entry."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="laneway-bench-redis-"))
        self.port = _free_port()
        program = redis_program()
        self.options = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
        self._server = subprocess.Popen(
            [program, "--port", str(self.port), "--dir", str(self._home), *self.options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.process = psutil.Process(self._server.pid)
        deadline = time.monotonic() + 10
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "redis-server does not start"
                time.sleep(0.05)
            else:
                break
        self._answers = self._socket.makefile("rb")
        self.version = self.info("redis_version")

    def ask(self, *words: str) -> str:
        """The answer to a command: a status, a number or a text."""
        self._socket.sendall((" ".join(words) + "\r\n").encode())
        line = self._answers.readline().decode().strip()
        if line.startswith("$"):
            return self._answers.read(int(line[1:]) + 2).decode().strip()
        assert not line.startswith("-"), line
        return line[1:]

    def info(self, name: str) -> str:
        found = [line for line in self.ask("INFO").splitlines() if line.startswith(f"{name}:")]
        return found[0].partition(":")[2]

    @contextlib.contextmanager
    def place(self, system: System) -> Iterator[RedisPlace]:
        self.ask("FLUSHALL")
        yield RedisPlace(self, system)

    def close(self) -> None:
        self._socket.close()
        self._server.kill()
        self._server.wait()
        shutil.rmtree(self._home, ignore_errors=True)


class RedisPlace:
    """The emptied Redis."""

    def __init__(self, redis: Redis, system: System) -> None:
        self._redis = redis
        self._keys = json.loads(system.settled)

    @property
    def variables(self) -> dict[str, str]:
        return {"REDIS_URL": f"redis://127.0.0.1:{self._redis.port}/0"}

    def is_settled(self) -> bool:
        return all(self._redis.ask(command, key) == "0" for command, key in self._keys)

    def counters(self) -> Counters:
        return Counters(cpu_s(self._redis.process), 0)

    def clean_up(self) -> None:
        return None

    def analyze(self) -> None:
        return None

    def hold_snapshot(self) -> contextlib.AbstractContextManager[None]:
        raise NotImplementedError("Redis has no snapshots")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
