"""A test finds the shared database as if it were new."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Server
from tests.support.database_pool import DatabasePool

TABLES = "select tablename::text from pg_tables where schemaname = 'laneway' order by tablename"


def content(conn: psycopg.Connection[tuple[object, ...]]) -> dict[str, object]:
    tables = [str(name) for (name,) in conn.execute(TABLES).fetchall()]
    rows = "select t::text from laneway.{} t order by 1"
    return {name: conn.execute(rows.format(name).encode()).fetchall() for name in tables}


@pytest.fixture
def pool(postgres: Server, template_db: str) -> DatabasePool:
    return DatabasePool(postgres, template_db)


def used(pool: DatabasePool, change: str) -> tuple[object, object]:
    """The name and content of the database after a test with this change."""
    with pool.database() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        before = content(conn)
        conn.execute(change.encode())
    with pool.database() as again, psycopg.connect(again, autocommit=True) as conn:
        assert content(conn) == before
        (seq,) = conn.execute("select nextval('laneway.jobs_seq_seq')").fetchone() or (0,)
        assert seq == 1
    pool.close()
    return dsn, again


@pytest.mark.parametrize(
    "change",
    [
        "select laneway.submit('greet', unique_key => 'k')",
        "delete from laneway.worker_lanes where name <> 'default' and name <> 'analysis'",
        "update laneway.control set paused = true",
        "begin; select laneway.submit('greet'); rollback",
        "delete from laneway.migrations",
    ],
)
def test_rows_are_put_back(pool: DatabasePool, postgres: Server, change: str) -> None:
    before, after = used(pool, change)
    assert (before == after) == (postgres.admin.info.server_version >= 150000)


@pytest.mark.parametrize(
    "change",
    [
        "create table public.more ()",
        "drop function laneway.wake",
        "truncate laneway.audit",
        "create index on laneway.jobs (created_by)",
        "alter table laneway.worker_lanes disable trigger all",
        "grant select on laneway.jobs to public",
        "do $$ begin execute format('alter database %I set jit = off', current_database()); end $$",
    ],
)
def test_database_with_another_schema_is_not_used_again(pool: DatabasePool, change: str) -> None:
    before, after = used(pool, change)
    assert before != after
