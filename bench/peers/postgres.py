"""The PostgreSQL that all systems share: a database for each run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import psutil
import psycopg
from psycopg import sql

from bench.peers.places import Counters, cpu_s
from bench.peers.programs import run_program
from bench.peers.system import System
from bench.server import Conn, Server

HOLDER = "holds a snapshot"


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

    def is_at_rest(self) -> bool:
        busy = self._postgres.value(
            "select count(*) from pg_stat_activity where datname = %s and xact_start is not null"
            " and backend_type = 'client backend' and application_name <> %s",
            self.name,
            HOLDER,
        )
        return int(busy) == 0

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
        with psycopg.connect(self.url, application_name=HOLDER) as conn:
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
            " ('command line', 'configuration file') and name !~* %s",
            ["dir|file|socket|port|log|lc_|style|zone|text|addresses|dynamic"],
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
