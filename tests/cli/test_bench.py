"""`laneway bench` measures in the user's database and leaves it as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from laneway.config.settings import Settings
from laneway.errors import Refused
from laneway.store import benchmark
from laneway.store.database import Database
from tests.cli.conftest import PROGRAM, Run
from tests.support.job_factory import JobFactory
from tests.support.pgbouncer import pgbouncer

# Tables whose rows a run may change: sequences and statistics are not among them.
TABLES = """
select c.relname::text from pg_class c
 where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'r'
   and c.relname not in ('control', 'event_log') order by 1
"""


def contents(conn: psycopg.Connection[Any]) -> dict[str, list[Any]]:
    """All rows of Laneway's tables."""
    return {
        name: sorted(
            row[0] for row in conn.execute(f"select t::text from laneway.{name} t".encode())
        )
        for (name,) in conn.execute(TABLES).fetchall()
    }


def has_schema(conn: psycopg.Connection[Any]) -> bool:
    row = conn.execute("select to_regnamespace('laneway_bench') is not null").fetchone()
    return row is not None and bool(row[0])


def fill(factory: JobFactory) -> None:
    """Jobs of the user: one waits, one has ended, and one has a lapsed lease."""
    factory.submit()
    factory.settle(factory.running("ended"))
    factory.running("lapsed")
    factory.conn.execute("update laneway.lease set lease_until = now() - interval '1 minute'")


def test_bench_measures_and_leaves_no_trace(run: Run, factory: JobFactory) -> None:
    fill(factory)
    before = contents(factory.conn)
    shown = run("bench", "--seconds", 1, "--json")
    assert shown.exit_code == 0, shown.stderr
    figures = json.loads(shown.stdout)
    for name in ("raw_insert_per_s", "raw_take_per_s", "submit_many_per_s", "submit_per_s",
                 "drain_per_s", "start_p50_ms", "round_trip_ms", "commit_ms"):  # fmt: skip
        assert figures[name] > 0, name
    assert figures["start_p99_ms"] >= figures["start_p50_ms"]
    assert " limit" in figures["limit"]
    # A leader would have taken the lapsed job back.
    assert contents(factory.conn) == before
    assert not has_schema(factory.conn)


def test_interrupted_bench_leaves_no_trace(dsn: str, factory: JobFactory) -> None:
    fill(factory)
    before = contents(factory.conn)
    with subprocess.Popen(
        [*PROGRAM, "bench", "--seconds", "4"],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("drain"):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "removing the jobs" in errors
    assert contents(factory.conn) == before
    assert not has_schema(factory.conn)


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    opened = Database(dsn, Settings.load(database_url=dsn))
    yield opened
    await opened.close()


async def test_second_bench_is_refused_or_removes_a_killed_one(
    db: Database, factory: JobFactory
) -> None:
    async with benchmark.raw_schema(db):
        with pytest.raises(Refused, match=r"a benchmark began \d+ s ago"):
            async with benchmark.raw_schema(db):
                raise AssertionError
        # Killed long ago: the next one removes what it left, also jobs that its worker held.
        factory.conn.execute("update laneway_bench.run set started_at = now() - interval '1 hour'")
        factory.conn.execute(
            "insert into laneway.worker_lanes (name, job_types, max_slots) values (%s, %s, null)",
            [benchmark.NAME, [*benchmark.JOB_TYPES]],
        )
        factory.running(benchmark.NOOP, workspace=benchmark.NAME)
        factory.submit(benchmark.STAMP, workspace=benchmark.NAME)
        async with benchmark.raw_schema(db):
            left = contents(factory.conn)
            assert left["jobs"] == left["lease"] == left["ready"] == left["slot_counts"] == []
            async with db.connection() as conn:
                await benchmark.insert_rows(conn, 1, 5, '{"text": "x"}')
                await benchmark.take_rows(conn, 2, 4)
            count = "select (select count(*) from laneway_bench.ready),"
            row = factory.conn.execute(f"{count} (select count(*) from laneway_bench.outcome)")
            assert row.fetchone() == (2, 3)
    assert not has_schema(factory.conn)


@pytest.mark.pooler
def test_bench_works_behind_a_transaction_pooler(
    run: Run, dsn: str, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(factory.conn)
    with pgbouncer(dsn) as pooled:
        monkeypatch.setenv("LANEWAY_DATABASE_URL", pooled)
        shown = run("bench", "--seconds", 1, "--json")
    assert shown.exit_code == 0, shown.stderr
    figures = json.loads(shown.stdout)
    assert figures["drain_per_s"] > 0
    # The database's own host is not this one, as far as a client can see.
    assert figures["machine_busy"] is None
    assert any("A transaction pooler" in note for note in figures["notes"])
    assert contents(factory.conn) == before


def test_schema_of_the_user_is_not_removed(run: Run, factory: JobFactory) -> None:
    factory.conn.execute("create schema laneway_bench")
    refused = run("bench")
    assert (refused.exit_code, "no benchmark created" in refused.stderr) == (4, True)
    assert has_schema(factory.conn)


def test_closed_gate_and_missing_schema_are_refused(
    run: Run, factory: JobFactory, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory.conn.execute("update laneway.control set paused = true")
    refused = run("bench")
    assert (refused.exit_code, "`laneway resume` opens it" in refused.stderr) == (4, True)
    monkeypatch.setenv("LANEWAY_DATABASE_URL", empty_dsn)
    assert "laneway db migrate" in run("bench").stderr


def test_role_without_rights_is_refused_with_the_reason(
    run: Run, dsn: str, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"limited_{uuid4().hex[:8]}"
    factory.conn.execute(f"create role {name}".encode())
    try:
        factory.conn.execute(f"grant usage on schema laneway to {name}".encode())
        factory.conn.execute(f"grant select on laneway.migrations to {name}".encode())
        monkeypatch.setenv("LANEWAY_DATABASE_URL", make_conninfo(dsn, options=f"-c role={name}"))
        refused = run("bench")
        assert refused.exit_code == 4, refused.stderr
        assert "does not own" in refused.stderr
    finally:
        factory.conn.execute(f"drop owned by {name}".encode())
        factory.conn.execute(f"drop role {name}".encode())
    assert not has_schema(factory.conn)
