"""The next test cannot tell a kept session from a new one; what is not idle is not kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Server
from tests.support.kept_sessions import NAME, KeptSessions

STATE = """
select (select count(*) from pg_prepared_statements),
       (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
       (select count(*) from pg_listening_channels()),
       to_regclass('pg_temp.t'), current_setting('search_path'), current_setting('application_name')
"""
CHANGES = (
    "set search_path to laneway",
    "set application_name to 'another'",
    "select pg_advisory_lock(1)",
    "listen news",
    "notify news",
    "create temporary table t (a int)",
)


@pytest.fixture
def sessions(empty_dsn: str) -> Iterator[KeptSessions]:
    sessions = KeptSessions()
    with pytest.MonkeyPatch.context() as patch, sessions.of(empty_dsn):
        sessions.install(patch)
        yield sessions


def connect(dsn: str, **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(dsn, application_name="mine", autocommit=True, **options)


def test_next_test_gets_the_session_as_if_it_were_new(
    sessions: KeptSessions, empty_dsn: str
) -> None:
    with connect(empty_dsn) as conn:
        new, pid = conn.execute(STATE).fetchone(), conn.info.backend_pid
        for change in CHANGES:
            conn.execute(change.encode(), prepare=not change.startswith(("listen", "notify")))
    assert conn.closed
    sessions.begin_test()
    with connect(empty_dsn) as again:
        assert again.info.backend_pid == pid
        assert again.execute(STATE).fetchone() == new
        assert list(again.notifies(timeout=0)) == []


async def test_asynchronous_connection_gets_the_session_of_another(
    sessions: KeptSessions, empty_dsn: str
) -> None:
    pids = []
    for _ in range(2):
        async with await psycopg.AsyncConnection.connect(empty_dsn, autocommit=True) as conn:
            cursor = await conn.execute("select pg_backend_pid()", prepare=True)
            pids += await cursor.fetchall()
        sessions.begin_test()
    assert pids[0] == pids[1]


def test_no_test_gets_a_session_that_it_has_closed(sessions: KeptSessions, empty_dsn: str) -> None:
    with connect(empty_dsn) as conn:
        pid = conn.info.backend_pid
    with connect(empty_dsn) as another:
        assert another.info.backend_pid != pid


def test_session_is_given_only_to_a_connection_with_its_options(
    sessions: KeptSessions, empty_dsn: str
) -> None:
    with connect(empty_dsn) as conn:
        pid = conn.info.backend_pid
    sessions.begin_test()
    with connect(empty_dsn, options="-c statement_timeout=5000") as another:
        assert another.info.backend_pid != pid
        assert another.execute("show statement_timeout").fetchone() == ("5s",)


@pytest.mark.parametrize("busy", ["begin", "select pg_terminate_backend(pg_backend_pid())"])
def test_session_that_is_busy_or_gone_is_not_kept(
    sessions: KeptSessions, empty_dsn: str, busy: str
) -> None:
    conn = connect(empty_dsn)
    pid = conn.info.backend_pid
    try:
        conn.execute(busy.encode())
    except psycopg.OperationalError:
        assert "terminate" in busy
    conn.close()
    sessions.begin_test()
    with connect(empty_dsn) as another:
        assert another.info.backend_pid != pid


def test_session_that_ended_meanwhile_is_replaced(
    sessions: KeptSessions, empty_dsn: str, postgres: Server
) -> None:
    with connect(empty_dsn) as conn:
        pid = conn.info.backend_pid
    sessions.begin_test()
    named = "select application_name from pg_stat_activity where pid = %s"
    assert postgres.admin.execute(named, [pid]).fetchone() == (NAME,)
    postgres.admin.execute("select pg_terminate_backend(%s, 60000)", [pid])
    with connect(empty_dsn) as another:
        assert another.execute("select 1").fetchone() == (1,)


def test_sessions_end_with_their_database(empty_dsn: str, postgres: Server) -> None:
    sessions = KeptSessions()
    with pytest.MonkeyPatch.context() as patch, sessions.of(empty_dsn):
        sessions.install(patch)
        connect(empty_dsn).close()
    kept = "select pid from pg_stat_activity where datname = %s and application_name = %s"
    name = empty_dsn.rsplit("/", 1)[1].split("?")[0]
    deadline = time.monotonic() + 60
    while postgres.admin.execute(kept, [name, NAME]).fetchall():
        assert time.monotonic() < deadline
        time.sleep(0.01)
