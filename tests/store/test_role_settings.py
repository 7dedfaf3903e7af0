"""Laneway works with any settings of a database role, or reports why it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from uuid import uuid4

import psycopg
import pytest

from laneway import Laneway
from laneway.config.settings import Settings
from laneway.control.health import examine
from laneway.control.health_check import Finding
from laneway.domain.filter import JobFilter
from laneway.errors import DatabaseUnavailable, UnsuitableDatabase
from laneway.store import explain, jobs
from laneway.store.database import Database, connection_options
from laneway.store.driver_errors import translated
from laneway.store.leases import LogEntry, Report
from laneway.store.migrate import check, migrate
from tests.conftest import Server
from tests.support.store_client import StoreClient

pytestmark = pytest.mark.usefixtures("new_sessions")

# Settings on one line are set together.
HARMLESS = [
    "client_encoding = 'SQL_ASCII'",
    "client_encoding = 'LATIN1'",
    "array_nulls = off",
    "transform_null_equals = on",
    "standard_conforming_strings = off; backslash_quote = off; escape_string_warning = on",
    "DateStyle = 'SQL, DMY'; IntervalStyle = sql_standard; bytea_output = escape",
    "DateStyle = 'German'; IntervalStyle = iso_8601; TimeZone = 'Asia/Kathmandu'",
    "extra_float_digits = -15; xmlbinary = hex; quote_all_identifiers = on",
    "default_transaction_isolation = 'repeatable read'",
    "default_transaction_isolation = serializable; default_transaction_deferrable = on",
    "statement_timeout = '1ms'; lock_timeout = '1ms'; idle_session_timeout = '1s'",
    "search_path = ''; row_security = off; exit_on_error = on; check_function_bodies = off",
    "client_min_messages = debug5; lc_messages = 'C'",
    "plpgsql.extra_errors = 'all'; plpgsql.extra_warnings = 'all'",
    "synchronous_commit = off; work_mem = '64kB'; jit = on; jit_above_cost = 0",
    "plan_cache_mode = force_custom_plan; enable_indexscan = off; random_page_cost = 1000",
    "plan_cache_mode = force_generic_plan; enable_nestloop = off; enable_material = off",
    "join_collapse_limit = 1; from_collapse_limit = 1; geqo_threshold = 2",
    "cursor_tuple_fraction = 0.0001; constraint_exclusion = on",
]
# Each function of pg_catalog that our functions name, in a schema before it, and it fails.
SHADOWS = """
do $do$
declare
    v_shadow text;
begin
    drop schema if exists shadows cascade;
    create schema shadows;
    for v_shadow in
        select format('create function shadows.%I(%s) returns %s language plpgsql as %L',
                      f.proname, pg_get_function_identity_arguments(f.oid),
                      pg_get_function_result(f.oid), 'begin raise exception $$shadowed$$; end')
          from pg_proc f
         where f.pronamespace = 'pg_catalog'::regnamespace and f.prokind = 'f'
           and f.proname = any (string_to_array('NAMES', ','))
    loop
        begin
            execute v_shadow;
        exception when others then null;  -- a pseudo-type that PL/pgSQL cannot take
        end;
    end loop;
end $do$
"""


@contextmanager
def role_with(postgres: Server, dsn: str, setting: str) -> Iterator[str]:
    """The DSN of a role with this setting."""
    name = f"odd_{uuid4().hex}"
    postgres.admin.execute(f"create role {name} superuser login password 'pw'".encode())
    try:
        for one in setting.split("; "):
            postgres.admin.execute(f"alter role {name} set {one}".encode())
        yield re.sub(r"//[^@]*@", f"//{name}:pw@", dsn, count=1)
    finally:
        postgres.admin.execute(f"drop role {name}".encode())


def opened(dsn: str) -> StoreClient:
    """A client with the connection options of Laneway."""
    return StoreClient(
        dsn, conn=psycopg.connect(dsn, **connection_options(dsn, Settings(), "test"))
    )


def live(db: StoreClient) -> None:
    """Run one job with a failure, a retry and every kind of report."""
    payload = {"naïve": "日本 \\ ' \"", "n": 0.1}
    seq = db.submit(payload=payload, unique_key="ключ", tags=["a'b", "NULL"])
    (first,) = db.claimed(1)
    assert db.heartbeat([first]) == []
    assert db.report([Report(first, done=0.5)], [LogEntry(first, 1, "info", "é", 0.1)]) == []
    failed = db.settle(first, "fail", error='{"type": "Boom", "message": "kaputt: ü"}')
    assert failed is not None
    assert failed.answer == "accepted"
    db.do("update laneway.delayed set run_at = pg_catalog.clock_timestamp()")
    db.do("select laneway.peek('{t}')")
    (second,) = db.claimed(1)
    assert db.settle(second, "finish", result='{"π": 3.14}') is None
    found = db.run(jobs.get(db.id_of(seq)))
    assert found is not None
    assert (found.status, found.payload, found.result) == ("completed", payload, {"π": 3.14})
    assert found.tags == ("a'b", "NULL")
    assert db.run(explain.facts(found.id)) is not None
    listed = db.run(jobs.listing(JobFilter(tag="NULL")))
    assert [job.id for job in listed.items] == [found.id]


@pytest.mark.parametrize("setting", HARMLESS)
def test_job_survives_any_role_setting(postgres: Server, db: StoreClient, setting: str) -> None:
    with role_with(postgres, db.dsn, setting) as dsn, opened(dsn) as odd:
        live(odd)


@pytest.mark.parametrize("name", ["idle_session_timeout", "lock_timeout"])
def test_timeouts_of_a_role_do_not_end_our_sessions(
    postgres: Server, db: StoreClient, name: str
) -> None:
    with role_with(postgres, db.dsn, f"{name} = '1s'") as dsn, opened(dsn) as odd:
        assert odd.one(f"show {name}") == "0"


def shadow(db: StoreClient) -> None:
    """Create functions with the names of PostgreSQL functions that ours call."""
    found = files("laneway.store").joinpath("definitions").iterdir()
    names = {name for file in found for name in re.findall(r"[a-z_]+", file.read_text("utf-8"))}
    db.do(SHADOWS.replace("NAMES", ",".join(sorted(names))))
    count = "select count(*) from pg_proc where pronamespace = 'shadows'::regnamespace"
    assert db.one(count) > 30


def test_schema_before_pg_catalog_shadows_nothing(postgres: Server, dsn: str) -> None:
    with StoreClient(dsn) as db:
        shadow(db)
    with role_with(postgres, dsn, "search_path = shadows, pg_catalog") as odd_dsn:
        with psycopg.connect(odd_dsn) as conn, pytest.raises(psycopg.Error, match="shadowed"):
            conn.execute("select now()")
        with opened(odd_dsn) as odd:
            live(odd)


def test_functions_bring_their_own_search_path(db: StoreClient) -> None:
    exposed = db.rows(
        "select f.proname from pg_proc f join pg_language l on l.oid = f.prolang"
        " where f.pronamespace = 'laneway'::regnamespace and l.lanname = 'plpgsql'"
        "   and 'search_path=pg_catalog, pg_temp' <> all (coalesce(f.proconfig, '{}'))"
    )
    assert exposed == []


def test_search_path_of_a_caller_does_not_reach_into_a_submit(dsn: str) -> None:
    with StoreClient(dsn) as caller:
        shadow(caller)
        caller.do("set search_path = shadows, pg_catalog")
        caller.do("select laneway.submit('t')")
        caller.do("reset search_path")
        assert caller.one("select count(*) from laneway.ready") == 1


def test_migration_means_the_functions_of_postgresql(postgres: Server, empty_dsn: str) -> None:
    with StoreClient(empty_dsn) as db:
        shadow(db)
        with role_with(postgres, empty_dsn, "search_path = shadows, pg_catalog") as odd_dsn:
            migrate(odd_dsn)
            used = db.rows(
                "select f.proname from pg_depend d join pg_proc f on f.oid = d.refobjid"
                " where d.refclassid = 'pg_proc'::regclass"
                "   and f.pronamespace = 'shadows'::regnamespace"
            )
            name = odd_dsn.partition("//")[2].partition(":")[0]
            db.do(f"reassign owned by {name} to current_user")
    assert used == []


def test_read_only_role_is_refused_with_the_cure(postgres: Server, dsn: str) -> None:
    with role_with(postgres, dsn, "default_transaction_read_only = on") as odd_dsn:
        with pytest.raises(UnsuitableDatabase, match=r"read-only .*alter role odd_"):
            check(odd_dsn, "0.1.0")
        with pytest.raises(UnsuitableDatabase, match=r"read-only .*alter role odd_"):
            migrate(odd_dsn)
        with pytest.raises(DatabaseUnavailable, match="default_transaction_read"), translated():
            psycopg.connect(odd_dsn, **connection_options(odd_dsn, Settings(), "test"))


@contextmanager
def database_in(postgres: Server, encoding: str) -> Iterator[tuple[str, str]]:
    """A database in this encoding: its name and DSN."""
    name = f"test_{uuid4().hex}"
    # ICU, where the server has it by default, does not know every encoding.
    libc = "locale_provider libc" if postgres.admin.info.server_version >= 150000 else ""
    postgres.admin.execute(
        f"create database {name} template template0 encoding '{encoding}'"
        f" lc_collate 'C' lc_ctype 'C' {libc}".encode()
    )
    try:
        yield name, postgres.dsn_of(name)
    finally:
        postgres.drop(name)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_database_that_cannot_hold_all_characters_is_refused(
    postgres: Server, encoding: str
) -> None:
    with database_in(postgres, encoding) as (name, dsn):
        for work in (lambda: check(dsn, "0.1.0"), lambda: migrate(dsn)):
            with pytest.raises(UnsuitableDatabase, match=f"{name} has the encoding {encoding}"):
                work()


async def next_step(dsn: str) -> str | None:
    """The command that doctor names for the schema."""
    database = Database(dsn, Settings.load(database_url=dsn))
    found = {check.name: check async for check in examine(database)}
    await database.close()
    assert found["schema"].finding is Finding.FAIL
    return found["schema"].next


async def test_doctor_gives_a_next_step_for_a_read_only_role(postgres: Server, dsn: str) -> None:
    with role_with(postgres, dsn, "default_transaction_read_only = on") as odd_dsn:
        step = await next_step(odd_dsn)
    assert step is not None
    assert re.match(r"run `alter role odd_\w+ set default_transaction_read_only = off`", step)


async def test_doctor_gives_a_next_step_for_an_encoding(postgres: Server) -> None:
    with database_in(postgres, "SQL_ASCII") as (_, dsn):
        step = await next_step(dsn)
    assert step == "use one created with `create database … encoding 'UTF8' template template0`"


async def test_worker_of_a_read_only_role_ends_instead_of_retrying(
    postgres: Server, dsn: str
) -> None:
    with role_with(postgres, dsn, "default_transaction_read_only = on") as odd_dsn:
        async with Laneway(odd_dsn) as lw:
            with pytest.raises(UnsuitableDatabase, match="default_transaction_read_only"):
                await lw.worker().start()
