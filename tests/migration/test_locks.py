"""A migration never makes others wait: not behind a reader, not behind a lost client."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from laneway.errors import DatabaseUnavailable
from laneway.store import migrate as migrating
from laneway.store.grants import grants
from laneway.store.migrate import Migration, definitions, migrations
from laneway.store.migration_files import transaction
from laneway.testing.proxy import Proxy
from tests.conftest import Server
from tests.migration.test_migrate import run
from tests.support.server_address import address

SUBMIT = "select from laneway.submit('greet', '{}')"
DEADLINE_S = 60.0
Conn = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def other(dsn: str) -> Iterator[Conn]:
    """A session with a long read in one transaction."""
    with psycopg.connect(dsn, application_name="nightly report") as conn:
        yield conn


@pytest.fixture
def in_background() -> Iterator[Callable[..., Future[Any]]]:
    with ThreadPoolExecutor(2) as pool:
        yield pool.submit


def add(monkeypatch: pytest.MonkeyPatch, sql: str) -> Migration:
    """Add one more migration after ours."""
    made = Migration(9001, "9001_more", sql, "pre", "0.1.0")
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), made))
    return made


def until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not yet: {what}"
        time.sleep(0.01)


def test_migration_lets_submits_pass_while_it_waits_for_a_reader(
    dsn: str,
    other: Conn,
    in_background: Callable[..., Future[Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "laneway")
    monkeypatch.setattr(migrating, "PAUSE_S", (0.0, 0.1))
    add(monkeypatch, "alter table laneway.control add column extra integer")
    other.execute("select from laneway.control")
    other.execute("select from laneway.jobs_view")
    migration = in_background(migrating.migrate, dsn)
    # Jobs are submitted between its tries and while it waits.
    until(lambda: len(caplog.records) > 2 or migration.done(), "it has tried thrice")
    assert not migration.done()
    run(dsn, SUBMIT)
    message = caplog.records[0].getMessage()
    assert f"pid {other.info.backend_pid} (nightly report, transaction open for" in message
    assert "control" in message
    other.rollback()
    assert migration.result(DEADLINE_S) == ["9001_more"]


def test_waits_for_several_locks_share_one_budget(
    dsn: str, other: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lock is free within its timeout, but the first would be held for all of them."""
    waits = "; ".join(
        f"do $$ begin perform pg_sleep(0.1); insert into public.timeouts values"
        f" ({n}, current_setting('lock_timeout')::interval); end $$"
        for n in range(5)
    )
    run(dsn, "create table public.timeouts (n int, wait interval)")
    add(monkeypatch, waits)
    migrating.migrate(dsn)
    got = [row[0] for row in run(dsn, "select wait from public.timeouts order by n")]
    seconds = [wait.total_seconds() for wait in got]
    assert seconds[0] <= 0.3
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] == 0.05


def test_migration_without_lock_names_blocker(
    dsn: str, other: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch, "alter table laneway.watches add column extra integer")
    other.execute("select from laneway.watches")
    with pytest.raises(
        DatabaseUnavailable, match=r"9001_more could not get its locks.*nightly report.*watches"
    ):
        migrating.migrate(dsn, patience_s=0)
    other.rollback()
    assert migrating.migrate(dsn, patience_s=0) == ["9001_more"]


def test_functions_are_replaced_under_readers_and_writers(dsn: str, other: Conn) -> None:
    """Unchanged views and triggers are not touched."""
    for name, kind in other.execute(
        "select c.oid::regclass::text, c.relkind from pg_class c"
        " where c.relnamespace = 'laneway'::regnamespace and c.relkind in ('r', 'v')"
    ).fetchall():
        what = f"lock table {name} in row exclusive mode" if kind == "r" else f"select from {name}"
        other.execute(what.encode())
    run(dsn, "update laneway.migrations set checksum = '' where number = 0")
    assert migrating.migrate(dsn, patience_s=0) == ["definitions"]


def test_grants_of_server_fail_rather_than_wait_for_reader(
    dsn: str, other: Conn, postgres: Server
) -> None:
    role = f"server_{uuid4().hex[:8]}"
    postgres.admin.execute(f"create role {role}".encode())
    text = grants(["server"], role, "absent")
    try:
        other.execute("select from laneway.jobs")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            run(dsn, text)
        other.rollback()
        run(dsn, text)
        policies = "select policyname::text from pg_policies where schemaname = 'laneway'"
        assert sorted(run(dsn, policies)) == [("everybody",), (role,)]
    finally:
        run(dsn, f"drop owned by {role}")
        postgres.admin.execute(f"drop role {role}".encode())


def test_view_that_differs_is_replaced(dsn: str) -> None:
    text = "select pg_get_viewdef('laneway.jobs_as_text'::regclass)"
    before = run(dsn, text)
    run(
        dsn,
        "do $$ begin execute 'create or replace view laneway.jobs_as_text as ' || rtrim("
        "pg_get_viewdef('laneway.jobs_as_text'::regclass), ';') || ' where false'; end $$;"
        "update laneway.migrations set checksum = '' where number = 0",
    )
    assert run(dsn, text) != before
    migrating.migrate(dsn)
    assert run(dsn, text) == before


async def test_migration_ends_by_itself_when_its_network_goes_silent(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(
        monkeypatch,
        "do $$ begin lock table laneway.jobs in access exclusive mode;"
        " while not exists (select from public.gate) loop perform pg_sleep(0.01); end loop; end $$",
    )
    run(dsn, "create table public.gate (n int)")
    locked = (
        "select 1 from pg_locks where relation = 'laneway.jobs'::regclass and granted"
        " and mode = 'AccessExclusiveLock'"
    )
    async with Proxy(*address(dsn)) as proxy:
        silent = make_conninfo(dsn, host=proxy.host, port=proxy.port)
        migration = asyncio.create_task(asyncio.to_thread(migrating.migrate, silent))
        await asyncio.to_thread(until, lambda: run(dsn, locked), "it holds its lock")
        proxy.blackhole()
        await asyncio.to_thread(run, dsn, "insert into public.gate values (1)")
        await asyncio.to_thread(until, lambda: not run(dsn, locked), "the lock is free")
        await asyncio.to_thread(run, dsn, SUBMIT)
        assert not migration.done()
        proxy.heal()
        assert await migration == ["9001_more"]


def test_migration_bounds_itself_on_the_server(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are local to the transaction: behind a pooler the session serves other clients."""
    names = (
        "idle_in_transaction_session_timeout",
        "statement_timeout",
        "client_connection_check_interval",
        "lock_timeout",
    )
    saved = ", ".join(f"current_setting('{name}')::interval" for name in names)
    add(monkeypatch, f"create table public.bounds as select array[{saved}] as got")
    migrating.migrate(dsn)
    [(got,)] = run(dsn, "select got from public.bounds")
    idle, statement, check, lock = (bound.total_seconds() for bound in got)
    assert (idle, statement, check) == (5, 3600, 2)
    assert 0 < lock <= 0.3
    text = transaction(definitions())
    assert text.index("tcp_user_timeout") < text.index("pg_advisory_xact_lock")
    assert text.index("tcp_keepalives_idle") < text.index("pg_advisory_xact_lock")
    assert "set session" not in text
