"""The work of `laneway bench` in a database: raw rows, samples of connections, and the removal.

The raw rows are in the schema `laneway_bench`, in copies of Laneway's tables. The jobs are in
Laneway's tables, in a workspace, a lane and job types of that name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from laneway.errors import Refused
from laneway.store.database import AsyncConn, Database
from laneway.store.statement import Statement, nothing, scalar

NAME: Final = "laneway_bench"
NOOP: Final = f"{NAME}_noop"
STAMP: Final = f"{NAME}_stamp"
CPU: Final = f"{NAME}_cpu"
JOB_TYPES: Final = (NOOP, STAMP, CPU)
# A killed benchmark is over by then.
ABANDONED_S: Final = 900.0
_REMOVED_AT_ONCE: Final = 5000
_FILES: Final = Path(__file__).parent
_TABLES: Final = ("run", "jobs", "ready", "outcome")


@cache
def _text(name: str) -> bytes:
    return (_FILES / f"{name}.sql").read_bytes()


class BenchmarkRights(NamedTuple):
    """Rights that a benchmark needs."""

    may_create_schema: bool
    owns_tables: bool


def check_rights() -> Statement[BenchmarkRights]:
    return Statement("benchmark/check_rights", lambda rows: BenchmarkRights(*rows[0]))


def is_local() -> Statement[bool]:
    """Whether client and server are on the same host; a pooler makes the answer useless."""
    return Statement("benchmark/is_local", scalar)


class ActiveConnection(NamedTuple):
    """An active connection, and what it waits for: None if it computes."""

    pid: int
    wait_type: str | None
    wait_event: str | None


def sample_connections() -> Statement[list[ActiveConnection]]:
    """The active connections of the benchmark's worker."""
    return Statement(
        "benchmark/sample_connections",
        lambda rows: [ActiveConnection(*row) for row in rows],
        {"application": NAME},
    )


class Progress(NamedTuple):
    has_ended: bool
    has_waiting: bool


def find_progress() -> Statement[Progress]:
    """Whether a job of the benchmark has ended, and whether one waits."""
    params = {"workspace": NAME, "job_type": NOOP}
    return Statement("benchmark/find_progress", lambda rows: Progress(*rows[0]), params)


class Drained(NamedTuple):
    """Jobs that ended after the first fifth, and the seconds this took."""

    jobs: int
    seconds: float

    @property
    def per_s(self) -> float:
        return self.jobs / self.seconds if self.seconds else 0.0


def measure_drain() -> Statement[Drained]:
    params = {"workspace": NAME, "job_type": NOOP}
    return Statement("benchmark/measure_drain", lambda rows: Drained(*rows[0]), params)


def with_name(dsn: str) -> str:
    """The DSN with an application name that identifies connections of the benchmark's worker."""
    return make_conninfo(dsn, application_name=NAME)


# Raw rows ----------------------------------------------------------------------------------------


@asynccontextmanager
async def raw_schema(db: Database) -> AsyncIterator[None]:
    """Create the schema of raw rows; at the end, remove it and every job of the benchmark.

    Refuses while another benchmark runs in the database, and first removes what a killed one left.
    """
    await _take_schema(db)
    try:
        yield
    finally:
        await remove_all(db)


async def _take_schema(db: Database) -> None:
    exists, is_ours = await db.run(Statement("benchmark/find_run", lambda rows: rows[0]))
    if exists and not is_ours:
        raise Refused(f"the database has a schema {NAME} that no benchmark created: rename it")
    if exists:
        async with db.connection() as conn:
            cursor = await conn.execute(
                "select extract(epoch from clock_timestamp() - started_at)::float8"
                " from laneway_bench.run"
            )
            row = await cursor.fetchone()
        if row is not None and row[0] < ABANDONED_S:
            raise Refused(
                f"a benchmark began {row[0]:.0f} s ago in this database: wait until it has ended;"
                f" if it was killed, `laneway bench` removes its jobs after {ABANDONED_S / 60:.0f}"
                " minutes"
            )
        await remove_all(db)
    async with db.connection() as conn, conn.transaction():
        try:
            for statement in _text("create_schema").split(b";\n"):
                if statement.strip():
                    await conn.execute(statement)
        except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
            raise Refused("another benchmark just began in this database") from None


async def insert_rows(conn: AsyncConn, first: int, last: int, payload: str) -> None:
    """Store raw jobs with these numbers, in one transaction."""
    await conn.execute(_text("insert_rows"), {"first": first, "last": last, "payload": payload})


async def take_rows(conn: AsyncConn, first: int, last: int) -> None:
    """Delete waiting raw jobs and record them as ended, in one transaction."""
    await conn.execute(_text("take_rows"), {"first": first, "last": last})


# Removal -----------------------------------------------------------------------------------------


async def remove_waiting(db: Database) -> None:
    """Delete the benchmark's waiting jobs, in batches."""
    params = {"job_types": [*JOB_TYPES], "limit": _REMOVED_AT_ONCE}
    while await db.run(Statement("benchmark/remove_waiting", len, params)):
        pass


async def remove_all(db: Database) -> None:
    """Delete every trace of a benchmark; its worker must have stopped."""
    await remove_waiting(db)
    lane = {"lane": NAME}
    types = {"job_types": [*JOB_TYPES]}
    await db.run(Statement("benchmark/remove_running", nothing, {**lane, **types}))
    ended = {"workspace": NAME, "limit": _REMOVED_AT_ONCE}
    while await db.run(Statement("benchmark/remove_ended", scalar, ended)):
        pass
    await db.run(Statement("benchmark/remove_registration", nothing, {**lane, **types}))
    await db.run(Statement("benchmark/remove_history", nothing, lane))
    # Last: until then, the next benchmark sees that there is something to remove.
    async with db.connection() as conn, conn.transaction():
        for table in _TABLES:
            await conn.execute(f"drop table if exists laneway_bench.{table}".encode())
        await conn.execute("drop schema if exists laneway_bench")
