"""Migrations: applied once, whole or not at all, and never to an unknown schema."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from laneway.errors import DatabaseUnavailable, InvalidInput, SchemaMismatch
from laneway.store import migrate as migrating
from laneway.store.grants import grants
from laneway.store.migrate import (
    Migration,
    check,
    definitions,
    migrate,
    migrations,
    script,
    status,
)
from tests.conftest import Server

NAMES = [m.name for m in migrations()]
ALL = [*NAMES, "definitions"]
BROKEN = Migration(
    9001, "9001_broken", "create table laneway.half (a int); select 1 / 0;", "pre", "0.1.0"
)

CATALOG = {
    "columns": """
        select c.relname, c.relkind::text, a.attnum, a.attname,
               format_type(a.atttypid, a.atttypmod),
               a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity::text,
               a.attcollation::regcollation::text, c.reloptions
          from pg_class c
          join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
         where c.relnamespace = 'laneway'::regnamespace and c.relkind in ('r', 'v', 'i', 'S')""",
    "indexes": "select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index"
    " where indrelid in (select oid from pg_class where relnamespace = 'laneway'::regnamespace)",
    "constraints": "select conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
    " from pg_constraint where connamespace = 'laneway'::regnamespace",
    "functions": "select pg_get_functiondef(oid) from pg_proc"
    " where pronamespace = 'laneway'::regnamespace",
    "triggers": "select pg_get_triggerdef(t.oid) from pg_trigger t"
    " join pg_class c on c.oid = t.tgrelid"
    " where c.relnamespace = 'laneway'::regnamespace and not t.tgisinternal",
    "views": "select viewname::text, definition from pg_views where schemaname = 'laneway'",
    "lanes": "select name, job_types, max_slots, poll_interval_ms, stale_timeout_minutes,"
    " lease_seconds, enabled from laneway.worker_lanes",
    "types": "select name, priority, max_retries, published_at from laneway.job_types",
    "control": "select version, paused from laneway.control",
    "applied": "select number, name, checksum, safe_with from laneway.migrations",
}


def catalog(dsn: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(dsn) as conn:
        return {
            name: sorted(conn.execute(query.encode()).fetchall(), key=repr)
            for name, query in CATALOG.items()
        }


def run(dsn: str, query: str, *params: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        cursor = conn.execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []


def test_each_migration_states_when_to_run_it_and_compatibility() -> None:
    numbers = [m.number for m in migrations()]
    assert len(set(numbers)) == len(numbers)
    assert all(m.phase in ("pre", "post") for m in migrations())
    assert all(m.safe_with.count(".") == 2 for m in migrations())


def test_second_run_applies_nothing(empty_dsn: str) -> None:
    assert migrate(empty_dsn) == ALL
    before = catalog(empty_dsn)
    assert migrate(empty_dsn) == []
    assert catalog(empty_dsn) == before


def test_four_at_once_apply_each_migration_once(empty_dsn: str) -> None:
    ready = threading.Barrier(4)

    def migrate_when_all_are_ready(_: int) -> list[str]:
        ready.wait()
        return migrate(empty_dsn)

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(migrate_when_all_are_ready, range(4)))
    assert sorted(name for answer in got for name in answer) == sorted(ALL)
    assert status(empty_dsn).pending == []


def test_status_lists_applied_pending_unknown_and_changed(empty_dsn: str) -> None:
    fresh = status(empty_dsn)
    assert (fresh.applied, fresh.pending, fresh.unknown, fresh.changed) == ([], ALL, [], [])
    migrate(empty_dsn)
    run(
        empty_dsn,
        "insert into laneway.migrations (number, name, checksum, safe_with)"
        " values (9000, '9000_later', '', '0.1.0')",
    )
    run(empty_dsn, "update laneway.migrations set checksum = 'x' where number = 1")
    now = status(empty_dsn)
    assert (now.applied, now.pending) == (ALL, [])
    assert (now.unknown, now.changed) == (["9000_later"], NAMES[:1])


def test_migration_changed_after_it_was_applied_is_refused(empty_dsn: str) -> None:
    migrate(empty_dsn)
    run(empty_dsn, "update laneway.migrations set checksum = 'x' where number = 1")
    with pytest.raises(SchemaMismatch, match=f"{NAMES[0]} changed after it was applied"):
        migrate(empty_dsn)


def test_code_refuses_a_database_that_lacks_a_migration(empty_dsn: str) -> None:
    with pytest.raises(
        SchemaMismatch, match="no Laneway schema in this database: run `laneway db migrate`"
    ):
        check(empty_dsn, "0.1.0")
    migrate(empty_dsn)
    check(empty_dsn, "0.1.0")


@pytest.mark.parametrize(
    "safe_with, code, is_refused",
    [
        ("0.1.0", "0.1.0", False),
        ("0.2.0", "0.1.9", True),
        ("0.10.0", "0.9.0", True),
        ("0.9.0", "0.10.0", False),
        ("1.0.0", "0.99.0", True),
    ],
)
def test_code_refuses_newer_incompatible_migration(
    empty_dsn: str, safe_with: str, code: str, is_refused: bool
) -> None:
    migrate(empty_dsn)
    run(
        empty_dsn,
        "insert into laneway.migrations (number, name, checksum, safe_with)"
        " values (9000, '9000_later', '', %s)",
        safe_with,
    )
    if is_refused:
        with pytest.raises(SchemaMismatch, match=f"9000_later, .*{safe_with} or newer.*{code}"):
            check(empty_dsn, code)
    else:
        check(empty_dsn, code)


def test_migration_that_fails_leaves_nothing_of_itself_and_keeps_those_before(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), BROKEN))
    with pytest.raises(Exception, match="division by zero"):
        migrating.migrate(empty_dsn)
    assert run(empty_dsn, "select to_regclass('laneway.half')") == [(None,)]
    assert [
        row[0] for row in run(empty_dsn, "select name from laneway.migrations order by number")
    ] == NAMES
    mended = replace(BROKEN, sql="create table laneway.half (a int)")
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), mended))
    assert migrating.migrate(empty_dsn) == [BROKEN.name, "definitions"]


def test_first_migration_failing_leaves_an_empty_database(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "migrations", lambda: (BROKEN,))
    with pytest.raises(Exception, match="division by zero"):
        migrating.migrate(empty_dsn)
    assert run(empty_dsn, "select to_regnamespace('laneway')") == [(None,)]


def test_custom_lane_named_analysis_is_reported_before_any_change(
    empty_dsn: str,
) -> None:
    """Since 0002 the lane of that name runs the analyses of all types."""
    run(empty_dsn, script(last=1))
    run(empty_dsn, "insert into laneway.worker_lanes (name, job_types) values ('analysis', '{a}')")
    with pytest.raises(InvalidInput, match="rename your lane analysis"):
        migrate(empty_dsn)
    assert status(empty_dsn).applied == NAMES[:1]
    run(empty_dsn, "update laneway.worker_lanes set name = 'mine' where name = 'analysis'")
    assert migrate(empty_dsn) == ALL[1:]


def test_workers_of_before_reach_the_database_themselves_and_are_not_rewritten(
    empty_dsn: str,
) -> None:
    """0004 adds data about workers, and workers of the previous version still work."""
    run(empty_dsn, script(last=3))
    old = (
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (gen_random_uuid(), 'host:1', 'host', 1, '0.1.0', '{greet}', 4)"
    )
    run(empty_dsn, old)
    file = "select pg_relation_filenode('laneway.workers')"
    before = run(empty_dsn, file)
    assert migrate(empty_dsn) == ALL[3:]
    assert run(empty_dsn, file) == before
    run(empty_dsn, old)
    query = "select transport, memory_bytes, drain_requested_at from laneway.workers"
    assert run(empty_dsn, query) == [("database", None, None)] * 2


def test_script_applied_by_other_means_makes_the_same_schema(
    postgres: Server, template_db: str, empty_dsn: str
) -> None:
    run(empty_dsn, script())
    assert catalog(empty_dsn) == catalog(postgres.dsn_of(template_db))
    assert migrate(empty_dsn) == []
    check(empty_dsn, "0.1.0")


def test_missing_schema_is_reported_with_remedy(empty_dsn: str) -> None:
    from laneway.store import lanes
    from laneway.store.database import run_sync

    with (
        psycopg.connect(empty_dsn, autocommit=True) as conn,
        pytest.raises(SchemaMismatch, match="laneway db migrate"),
    ):
        run_sync(conn, lanes.read())


@pytest.fixture
def powerless(postgres: Server, empty_dsn: str) -> Iterator[str]:
    """A role with the right to connect only."""
    role = f"powerless_{uuid4().hex[:8]}"
    postgres.admin.execute(f"create role {role} login password 'p'".encode())
    try:
        yield psycopg.conninfo.make_conninfo(empty_dsn, user=role, password="p")
    finally:
        postgres.admin.execute(f"drop role {role}".encode())


RIGHTS = """
select 'table', c.relname::text, a.privilege_type
  from pg_class c cross join lateral aclexplode(c.relacl) a
 where c.relnamespace = 'laneway'::regnamespace and a.grantee = %(role)s::regrole
union all
select 'function', f.proname::text, a.privilege_type
  from pg_proc f cross join lateral aclexplode(f.proacl) a
 where f.pronamespace = 'laneway'::regnamespace and a.grantee = %(role)s::regrole
"""


@pytest.fixture
def role(postgres: Server, empty_dsn: str) -> Iterator[str]:
    """A role with a name that must be quoted."""
    name = f"Worker {uuid4().hex[:8]}"
    postgres.admin.execute(SQL("create role {}").format(Identifier(name)))
    try:
        yield name
    finally:
        with psycopg.connect(empty_dsn, autocommit=True) as conn:
            conn.execute(SQL("drop owned by {}").format(Identifier(name)))
        postgres.admin.execute(SQL("drop role {}").format(Identifier(name)))


@pytest.mark.parametrize("laneway_role", ["worker", "handler", "client", "approver"])
def test_role_of_before_calls_the_functions_of_now(
    empty_dsn: str, role: str, laneway_role: str
) -> None:
    """Workers of the previous version work on the new schema."""
    quoted = Identifier(role).as_string(None)

    def rights() -> set[tuple[Any, ...]]:
        with psycopg.connect(empty_dsn) as conn:
            return set(conn.execute(RIGHTS, {"role": quoted}).fetchall())

    migrate(empty_dsn)
    run(empty_dsn, grants([laneway_role], role, "absent"))
    new = {"audit", "emit", "watches", "submit_batch"}
    known = {right for right in rights() if right[1] not in new}
    run(empty_dsn, f"revoke all on laneway.audit, laneway.watches from {quoted}")
    functions = "laneway.emit, laneway.submit_batch"
    run(empty_dsn, f"revoke execute on function {functions} from {quoted}")
    assert rights() == known
    run(empty_dsn, "update laneway.migrations set checksum = '' where number = 0")
    assert migrate(empty_dsn) == ["definitions"]
    gained = {right[:2] for right in rights() - known}
    # Roles that submit may submit many; the others call functions for the other tables.
    expected = {
        "worker": {("function", "emit"), ("table", "watches")},
        "client": {("function", "submit_batch")},
    }
    assert gained == expected.get(laneway_role, set())


def test_unchanged_functions_keep_their_grants(empty_dsn: str, role: str) -> None:
    migrate(empty_dsn)
    quoted = Identifier(role).as_string(None)
    run(empty_dsn, f"grant execute on function laneway.measure to {quoted}")
    run(empty_dsn, definitions().sql)
    held = "select has_function_privilege(%s, 'laneway.measure(integer)', 'execute')"
    run(empty_dsn, "revoke execute on function laneway.measure from public")
    assert run(empty_dsn, held, role) == [(True,)]


def test_role_without_rights_sees_which_right_it_lacks(powerless: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"permission denied for database .*db grants"):
        migrate(powerless)


def test_missing_database_is_reported_plainly(postgres: Server) -> None:
    with pytest.raises(DatabaseUnavailable, match="does not exist"):
        migrate(postgres.dsn_of("no_such_database"))
