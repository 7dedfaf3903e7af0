"""Migrates a database to the schema of this code while other processes use it.

Numbered files are applied in order, each in its own transaction, by one process at a time.
Functions and views need no history: `definitions/` holds their current text, and all are replaced
together, after the numbered files, when the text differs from the applied one. The number of the
newest migration is their version: older code neither replaces newer functions nor refuses to start
on them, because its calls still work. Database roles keep the functions that they could call.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg import errors as pg

from laneway.domain.lane import Lane
from laneway.errors import DatabaseUnavailable, MissingRight, SchemaMismatch
from laneway.observability.safe_logger import SafeLogger
from laneway.store.driver_errors import translated
from laneway.store.grants import regrant
from laneway.store.login import logging_in
from laneway.store.migration_files import (
    LOCK,
    Migration,
    definitions,
    migrations,
    replace_seeds,
    transaction,
)
from laneway.store.migration_files import script as _script
from laneway.store.missing_relations import CURE_RESTORE, describe, find_missing
from laneway.store.missing_rights import refuse_missing_rights
from laneway.store.retired_functions import drop_retired
from laneway.store.server_settings import ENCODING, refuse_unsuitable
from laneway.store.statement import Statement

__all__ = [
    "LOCK",
    "Migration",
    "MigrationStatus",
    "check",
    "connected",
    "definitions",
    "migrate",
    "migrations",
    "read_status",
    "script",
    "status",
]

log = SafeLogger("laneway")

# The total time to wait for locks, and the pause after each try. While a migration waits for a
# lock, all later transactions wait behind it: so tries are short and rare.
PATIENCE_S = 120.0
CURE_OWNER = (
    "only the owner of the schema laneway may migrate it, and only a role that may create schemas"
    " in the database can create it; log in as such a role, or as one prepared with the SQL of"
    " `laneway db grants --role owner` and `laneway db grants --role migrator`"
)
PAUSE_S = (0.7, 1.5)
CALLERS = """
select a.grantee::regrole::text, array_agg(distinct f.proname::text)
  from pg_proc f cross join lateral aclexplode(f.proacl) a
 where f.pronamespace = 'laneway'::regnamespace and a.grantee not in (0, f.proowner)
 group by 1
"""
# Roles with hand-made grants: they could call functions because all roles could, which this version
# ends. Roles that may read a view keep its functions, roles that may insert jobs keep submit, and
# roles that may write leases without any granted function keep all functions.
CALLERS_BY_HAND = """
with recursive views as (
    select c.oid as view, c.oid as uses from pg_class c
     where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'v'
    union
    select v.view, c.oid from views v
      join pg_rewrite r on r.ev_class = v.uses
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
           and d.refclassid = 'pg_class'::regclass
      join pg_class c on c.oid = d.refobjid and c.relnamespace = 'laneway'::regnamespace
           and c.relkind = 'v'
), needs as (
    select v.view as relation, 'SELECT' as holds, d.refobjid as function from views v
      join pg_rewrite r on r.ev_class = v.uses
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
           and d.refclassid = 'pg_proc'::regclass
    union all
    select to_regclass('laneway.jobs'), 'INSERT', f.oid from pg_proc f where f.proname = 'submit'
    union all
    select to_regclass('laneway.lease'), 'UPDATE', f.oid from pg_proc f
), given as (
    select distinct a.grantee from pg_proc f cross join lateral aclexplode(f.proacl) a
     where f.pronamespace = 'laneway'::regnamespace
)
select a.grantee::regrole::text, array_agg(distinct f.proname::text order by f.proname::text)
  from needs n
  join pg_class c on c.oid = n.relation
 cross join lateral aclexplode(c.relacl) a
  join pg_proc f on f.oid = n.function and f.pronamespace = 'laneway'::regnamespace
 where a.privilege_type = n.holds and a.grantee not in (0, c.relowner, f.proowner)
   and exists (select from aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) p
                where p.grantee = 0)
   and not exists (select from aclexplode(f.proacl) p where p.grantee = a.grantee)
   and (n.holds <> 'UPDATE' or not exists (select from given g where g.grantee = a.grantee))
 group by a.grantee
"""
Applied = dict[int, tuple[str, str, str]]  # number -> name, checksum, safe_with

# The applied migrations as one text, to detect a concurrent migration.
_CHECKSUMS = """
select coalesce(string_agg(number || ' ' || checksum, ',' order by number), '')
  from laneway.migrations
"""
_GUARD = f"""
do $guard$ begin
    if ({_CHECKSUMS}) <> '{{seen}}' then
        raise exception 'another process has migrated' using errcode = 'LW003';
    end if;
end $guard$;
"""
_BLOCKERS = """
select a.pid, coalesce(nullif(a.application_name, ''), a.backend_type, 'unknown'),
       extract(epoch from clock_timestamp() - a.xact_start)::float8,
       string_agg(distinct c.relname, ', ' order by c.relname)
  from pg_locks l
  join pg_class c on c.oid = l.relation and c.relnamespace = to_regnamespace('laneway')
       and c.relkind in ('r', 'v')
  join pg_stat_activity a on a.pid = l.pid
 where l.granted and l.pid <> pg_backend_pid()
   and l.database = (select d.oid from pg_database d where d.datname = current_database())
 group by a.pid, 2, a.xact_start
 order by a.xact_start nulls last limit 3
"""


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """The migrations of a database compared with those of this code."""

    applied: list[str]
    pending: list[str]
    unknown: list[str]
    changed: list[str]
    # Tables, views and functions that applied migrations created and that are gone.
    missing: list[str] = field(default_factory=list)


def _connect(dsn: str) -> psycopg.Connection[tuple[Any, ...]]:
    with logging_in(dsn):
        return psycopg.connect(
            dsn,
            autocommit=True,
            application_name="laneway migrate",
            connect_timeout=10,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
            client_encoding=ENCODING,
            # A pooler may be in front of PostgreSQL.
            prepare_threshold=None,
        )


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection for changes of the schema, of a login that may make them."""
    with (
        translated(),
        _connect(dsn) as conn,
    ):
        refuse_unsuitable(conn)
        yield conn


def migrate(dsn: str, *, patience_s: float = PATIENCE_S, lanes: Sequence[Lane] = ()) -> list[str]:
    """Applies missing migrations; returns their names. Safe to run from many places at once.

    Waits up to `patience_s` for locks of other sessions, in short tries. In a new database `lanes`,
    if given, replace the seeded ones.
    """
    done = []
    deadline = time.monotonic() + patience_s
    with connected(dsn) as conn:
        while (migration := _next(applied := _applied(conn))) is not None:
            by_hand = _by_hand(conn, migration)
            try:
                conn.execute(_text(conn, migration, applied, by_hand, lanes).encode())
            except (pg.LockNotAvailable, pg.DeadlockDetected) as error:
                conn.rollback()
                _wait(conn, migration, error, deadline)
            except pg.DependentObjectsStillExist as error:
                diag = error.diag
                raise SchemaMismatch(
                    f"{diag.message_primary} ({diag.message_detail}): it is of an earlier version;"
                    " drop the objects that depend on it, then run `laneway db migrate` again"
                ) from error
            except pg.InsufficientPrivilege as error:
                message = (error.diag.message_primary or str(error)).strip()
                raise MissingRight(message, CURE_OWNER) from error
            except psycopg.Error as error:
                if error.sqlstate != "LW003":
                    raise
                conn.rollback()
            else:
                done.append(migration.name)
                for role, functions in by_hand:
                    log.warning(
                        "granted to %s, because functions are no longer open to all roles:"
                        " execute on %s; see `laneway db grants`",
                        role,
                        ", ".join(functions),
                    )
        if _is_replaceable(applied) and (missing := find_missing(conn)):
            raise SchemaMismatch(f"{describe(missing)}: {CURE_RESTORE}")
        drop_retired(conn)
    return done


def _by_hand(
    conn: psycopg.Connection[tuple[Any, ...]], migration: Migration
) -> list[tuple[str, list[str]]]:
    """Roles that would lose functions by this migration, each with the functions to keep."""
    if not migration.is_definitions:
        return []
    return [(role, names) for role, names in conn.execute(CALLERS_BY_HAND).fetchall()]


def _next(applied: Applied) -> Migration | None:
    """The first migration that the database lacks."""
    wanted = (*migrations(), definitions())
    return next((m for m in wanted if not _is_applied(applied, m)), None)


def _text(
    conn: psycopg.Connection[tuple[Any, ...]],
    migration: Migration,
    seen: Applied,
    by_hand: list[tuple[str, list[str]]],
    lanes: Sequence[Lane],
) -> str:
    checksums = ",".join(
        f"{number} {checksum}" for number, (_, checksum, _) in sorted(seen.items())
    )
    grants = []
    if migration.is_definitions:
        for role, functions in [*conn.execute(CALLERS).fetchall(), *by_hand]:
            grants += regrant(role, functions)
        if lanes and migration.number not in seen:
            grants.append(replace_seeds(lanes))
    return transaction(migration, first=_GUARD.format(seen=checksums), after=grants)


def _wait(
    conn: psycopg.Connection[tuple[Any, ...]],
    migration: Migration,
    error: psycopg.Error,
    deadline: float,
) -> None:
    """Logs the blocking sessions and pauses; raises after the deadline."""
    blockers = "; ".join(
        f"pid {pid} ({name}, "
        + ("transaction open" if age is None else f"transaction open for {age:.0f} s")
        + f", uses {tables})"
        for pid, name, age, tables in conn.execute(_BLOCKERS).fetchall()
    )
    blockers = blockers or "another migration, or sessions that have ended"
    pause = random.uniform(*PAUSE_S)
    if time.monotonic() + pause > deadline:
        raise DatabaseUnavailable(
            f"{migration.name} could not get its locks: blocked by {blockers};"
            " nothing of it was applied: run `laneway db migrate` again when they have ended"
        ) from error
    log.warning("%s waits for its locks: blocked by %s", migration.name, blockers)
    time.sleep(pause)


def _is_applied(applied: Applied, migration: Migration) -> bool:
    row = applied.get(migration.number)
    if migration.is_definitions:
        return not _is_replaceable(applied) or (row is not None and row[1] == migration.checksum)
    if row is not None and row[1] != migration.checksum:
        raise SchemaMismatch(
            f"{migration.name} changed after it was applied: another version of Laneway created"
            " this database; use that version, or another database (LANEWAY_DATABASE_URL,"
            " or LANEWAY_DATA_DIR for an embedded one)"
        )
    return row is not None


def _is_replaceable(applied: Applied) -> bool:
    """Whether the functions in the database are not newer than those of this code."""
    return not applied.keys() - {m.number for m in migrations()} - {0}


def _applied(conn: psycopg.Connection[tuple[Any, ...]]) -> Applied:
    if conn.execute("select to_regclass('laneway.migrations')").fetchone() == (None,):
        return {}
    rows = conn.execute(
        "select number, name, checksum, safe_with from laneway.migrations"
    ).fetchall()
    return {number: (name, checksum, safe) for number, name, checksum, safe in rows}


def status(dsn: str, *, lock_timeout_s: float = 0) -> MigrationStatus:
    """Applied, pending, unknown and changed migrations of a database; 0: waits without limit."""
    with connected(dsn) as conn, conn.transaction():
        conn.execute(f"set local lock_timeout = {int(lock_timeout_s * 1000)}".encode())
        applied = _applied(conn)
        state = _compared(applied)
        is_other = state.pending or state.unknown
        return state if is_other else replace(state, missing=find_missing(conn))


def read_status() -> Statement[MigrationStatus]:
    """The same as a statement, for a database that has the schema."""
    return Statement(
        "health/read_migrations", lambda rows: _compared({r[0]: (r[1], r[2], r[3]) for r in rows})
    )


def _compared(applied: Applied) -> MigrationStatus:
    ours = {m.number: m for m in migrations()}
    pending = [m.name for m in ours.values() if m.number not in applied]
    done = [name for number, (name, _, _) in sorted(applied.items()) if number in ours]
    has_definitions = bool(applied) and _is_applied(applied, definitions())
    (done if has_definitions else pending).append(definitions().name)
    return MigrationStatus(
        applied=done,
        pending=pending,
        unknown=[
            name for number, (name, _, _) in sorted(applied.items()) if number not in {0, *ours}
        ],
        changed=[
            m.name
            for m in ours.values()
            if m.number in applied and applied[m.number][1] != m.checksum
        ],
    )


def check(dsn: str, code: str, *, role: str | None = None) -> None:
    """Raises if the schema is too old or too new for this code.

    With the name of a Laneway role, also if the database role lacks one of its rights.
    """
    with connected(dsn) as conn:
        try:
            applied = _applied(conn)
        except pg.InsufficientPrivilege:
            if role is not None:
                refuse_missing_rights(conn, role)
            raise
        _refuse_misfit(applied, code)
        if role is not None:
            refuse_missing_rights(conn, role)


def _refuse_misfit(applied: Applied, code: str) -> None:
    if not applied:
        raise SchemaMismatch("no Laneway schema in this database: run `laneway db migrate`")
    missing = [m.name for m in migrations() if m.number not in applied and m.phase == "pre"]
    # Compares versions, not texts: functions of newer code support the calls of this code.
    if not missing and definitions().number not in applied:
        missing.append("the functions of this version")
    if missing:
        raise SchemaMismatch(f"the database lacks {', '.join(missing)}: run `laneway db migrate`")
    known = {0, *(m.number for m in migrations())}
    for number, (name, _, safe_with) in sorted(applied.items()):
        if number not in known and _version(code) < _version(safe_with):
            raise SchemaMismatch(
                f"the database has {name}, which is safe with Laneway {safe_with} or newer; "
                f"this is {code}"
            )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def script(first: int = 1, last: int | None = None) -> str:
    """The SQL that `migrate` would run, for applying it with other tools."""
    wanted = [m for m in migrations() if m.number >= first and (last is None or m.number <= last)]
    return _script((*wanted, *([definitions()] if last is None else [])))
