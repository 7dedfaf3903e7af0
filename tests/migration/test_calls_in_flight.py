"""A call that began before an upgrade ends as if there had been none."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from laneway.store import retired_functions
from laneway.store.migrate import migrate
from laneway.store.migration_files import LOCK
from tests.conftest import Server
from tests.migration.test_locks import DEADLINE_S, until
from tests.migration.test_migrate import run

# Functions as an earlier version had them: other parameters, result, language and rights.
EARLIER = """
drop function laneway.wake;
create function laneway.wake(p_old integer) returns text language plpgsql
    as $$ begin return 'parameters'; end $$;
drop function laneway.retry;
create function laneway.retry(p_seq bigint) returns text language plpgsql
    as $$ begin return 'result'; end $$;
create or replace function laneway.leads(
    p_holder uuid, p_epoch bigint, p_now timestamptz default null)
    returns boolean language plpgsql as $$ begin return p_epoch = 7; end $$;
create or replace function laneway.recount_queued(p_most integer default 500000) returns integer
    language plpgsql as $$ begin return -1; end $$;
update laneway.migrations set checksum = '' where number = 0;
create table public.gate ();
-- Waits at the gate, then sees the changes that other sessions made to the catalog.
create function public.pass(n integer) returns void language plpgsql as $$
begin
    perform from public.gate;
    execute format('create temporary table passed_%s ()', n);
end $$;
"""
CALLS = """
select laneway.wake(n), laneway.retry(n), laneway.leads(gen_random_uuid(), n + 6),
       laneway.recount_queued(n)"""
# The gate is opened while the statement is parsed, after the calls.
PARSED = f"{CALLS}, (select count(*) from public.gate) from generate_series(1, 1) n"
# The gate is opened while the statement runs, after the first row.
RUNNING = f"{CALLS}, public.pass(n) from generate_series(1, 3) n"
RETIRED = "select count(*) from pg_proc where proname like 'retired\\_%'"

# Migrations that have listed the transactions before them.
LISTED = (
    "select count(*) from pg_stat_activity where application_name = 'laneway migrate'"
    " and datname = current_database() and state = 'idle' and query like '%virtualxid%'"
)


@contextmanager
def at_the_gate(dsn: str, statement: str, role: str) -> Iterator[Future[list[tuple[Any, ...]]]]:
    """Run a statement that waits at the gate until the block ends."""
    waits = "select 1 from pg_locks where relation = 'public.gate'::regclass and not granted"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn) as keeper:
        keeper.execute("lock table public.gate")
        answer = pool.submit(run, make_conninfo(dsn, options=f"-c role={role}"), statement)
        until(lambda: run(dsn, waits) or answer.done(), "the statement waits at the gate")
        assert not answer.done()
        yield answer


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retired_functions, "PATIENCE_S", 0.0)


@pytest.mark.parametrize("statement", [PARSED, RUNNING], ids=["parsed", "running"])
def test_call_of_a_replaced_function_ends_as_it_began(dsn: str, statement: str) -> None:
    run(dsn, EARLIER)
    with at_the_gate(dsn, statement, "none") as answer:
        assert migrate(dsn) == ["definitions"]
        assert run(dsn, "select * from laneway.retry(1)") == [(None, None)]
    got = answer.result(DEADLINE_S)
    assert [row[:4] for row in got] == [
        ("parameters", "result", n == 0, -1) for n in range(len(got))
    ]
    # The next migration finds no call in flight.
    assert run(dsn, RETIRED) == [(4,)]
    assert migrate(dsn) == []
    assert run(dsn, RETIRED) == [(0,)]


def test_replaced_function_goes_when_earlier_transactions_end(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retired_functions, "PATIENCE_S", DEADLINE_S)
    run(dsn, EARLIER)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn) as later:
        with at_the_gate(dsn, PARSED, "none"):
            migration = pool.submit(migrate, dsn)
            until(lambda: run(dsn, LISTED) == [(1,)], "the migration has listed the transactions")
            later.execute("select 1")
            assert run(dsn, RETIRED) == [(4,)]
            assert not migration.done()
        assert migration.result(DEADLINE_S) == ["definitions"]
    assert run(dsn, RETIRED) == [(0,)]


def test_call_in_flight_keeps_the_right_that_all_roles_had(dsn: str, postgres: Server) -> None:
    role = f"lw_{uuid4().hex[:8]}"
    postgres.admin.execute(f"create role {role}".encode())
    try:
        run(
            dsn,
            "drop function laneway.submit;"
            "create function laneway.submit(p_job_type text) returns text language sql volatile"
            " as 'select p_job_type';"
            "create table public.gate ();"
            f"grant usage on schema laneway to {role};"
            f"grant insert on laneway.jobs to {role};"
            f"grant select on public.gate to {role};"
            "update laneway.migrations set checksum = '' where number = 0",
        )
        call = "select laneway.submit('greet'), (select count(*) from public.gate)"
        with at_the_gate(dsn, call, role) as answer:
            assert migrate(dsn) == ["definitions"]
        assert answer.result(DEADLINE_S) == [("greet", 0)]
    finally:
        run(dsn, f"drop owned by {role}")
        postgres.admin.execute(f"drop role {role}".encode())


def test_two_migrators_drop_replaced_functions_at_any_isolation_level(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retired_functions, "PATIENCE_S", DEADLINE_S)
    run(
        dsn,
        "create function laneway.retired_1_wake(p_old integer, p_at timestamptz) returns integer"
        " language sql as 'select 1';"
        "create function laneway.retired_jobs() returns integer language sql as 'select 2'",
    )
    waiting = (
        "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
        " where l.locktype = 'advisory' and not l.granted and d.datname = current_database()"
    )
    cautious = make_conninfo(dsn, options=r"-c default_transaction_isolation=repeatable\ read")
    with (
        ThreadPoolExecutor(2) as pool,
        psycopg.connect(dsn, autocommit=True) as third,
        psycopg.connect(dsn) as earlier,
    ):
        third.execute("select pg_advisory_lock(%s)", [LOCK])
        earlier.execute("select 1")
        migrators = [pool.submit(migrate, cautious) for _ in range(2)]
        until(lambda: run(dsn, LISTED) == [(2,)], "both have listed the earlier transaction")
        earlier.rollback()
        until(lambda: run(dsn, waiting) == [(2,)], "both wait for a third migration")
        third.close()
        assert [each.result(DEADLINE_S) for each in migrators] == [[], []]
    # A function of the user with a similar name stays.
    assert run(dsn, "select proname from pg_proc where proname like 'retired\\_%'") == [
        ("retired_jobs",)
    ]
