"""Numbered SQL files, applied in order, each in its own transaction, by one process at a time.

Functions and views have no history worth keeping: `definitions/` holds each as it is now, and all
are replaced at once, after the numbered files, whenever their text differs from what was applied.
Database roles that could call one can call it as it is now, for older code goes on beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg

from laneway.errors import SchemaMismatch
from laneway.store.failures import translated
from laneway.store.grants import kept
from laneway.store.statement import Statement

LOCK = 5577006791947779411
BOOTSTRAP = """
create schema if not exists laneway;
create table if not exists laneway.migrations (
    number     integer primary key,
    name       text not null,
    checksum   text not null,
    safe_with  text not null,
    applied_at timestamptz not null default clock_timestamp()
);
"""


RECORD = """
insert into laneway.migrations (number, name, checksum, safe_with) values (%s, %s, %s, %s)
on conflict (number) do update
   set checksum = excluded.checksum, safe_with = excluded.safe_with, applied_at = clock_timestamp()
"""
CALLERS = """
select a.grantee::regrole::text, array_agg(distinct f.proname::text)
  from pg_proc f cross join lateral aclexplode(f.proacl) a
 where f.pronamespace = 'laneway'::regnamespace and a.grantee not in (0, f.proowner)
 group by 1
"""
Applied = dict[int, tuple[str, str, str]]  # number -> name, checksum, safe_with


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its phase (pre or post deployment), the oldest code it is safe with."""

    number: int
    name: str
    sql: str
    phase: str
    safe_with: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """Where a database stands against this code."""

    applied: list[str]
    pending: list[str]
    unknown: list[str]
    changed: list[str]


def _header(text: str, key: str) -> str | None:
    found = re.search(rf"^-- {key}: (.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else None


@cache
def migrations() -> tuple[Migration, ...]:
    """The migrations of this code, in order."""
    found = []
    for file in files("laneway.store").joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match:
            text = file.read_text("utf-8")
            phase, safe_with = _header(text, "phase"), _header(text, "safe-with")
            if phase not in ("pre", "post") or safe_with is None:
                raise SchemaMismatch(f"{file.name}: its head must say `phase` and `safe-with`")
            found.append(Migration(int(match[1]), file.name[:-4], text, phase, safe_with))
    return tuple(sorted(found, key=lambda m: m.number))


@cache
def definitions() -> Migration:
    """The functions and views of this code, under the number that no migration has."""
    texts = {
        file.name: file.read_text("utf-8")
        for file in files("laneway.store").joinpath("definitions").iterdir()
        if file.name.endswith(".sql")
    }
    # Bodies name each other, so none can be checked before all are there.
    parts = ["set local check_function_bodies = off;"]
    parts += [f"-- {name}\n{texts[name].strip()}\n" for name in sorted(texts)]
    newest = migrations()[-1]
    return Migration(0, "definitions", "\n".join(parts), "pre", newest.safe_with)


@contextmanager
def _connected(dsn: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with (
        translated(),
        psycopg.connect(
            dsn, autocommit=True, application_name="laneway migrate", connect_timeout=10
        ) as conn,
    ):
        yield conn


def migrate(dsn: str) -> list[str]:
    """Applies what is missing; answers the names applied. Safe to run from many places at once."""
    done = []
    with _connected(dsn) as conn:
        for migration in (*migrations(), definitions()):
            with conn.transaction():
                # Waits for its turn, but DDL never queues for long behind a reader: others would
                # queue behind it.
                conn.execute("set local lock_timeout = '60s'")
                conn.execute("select pg_advisory_xact_lock(%s)", [LOCK])
                conn.execute("set local client_min_messages = warning")
                conn.execute("set local lock_timeout = '5s'")
                conn.execute(BOOTSTRAP)
                if _is_applied(_applied(conn), migration):
                    continue
                callers = conn.execute(CALLERS).fetchall() if migration.number == 0 else []
                conn.execute(migration.sql.encode())
                for role, functions in callers:
                    for line in kept(role, functions):
                        conn.execute(line.encode())
                conn.execute(
                    RECORD,
                    [migration.number, migration.name, migration.checksum, migration.safe_with],
                )
                done.append(migration.name)
    return done


def _is_applied(applied: Applied, migration: Migration) -> bool:
    known = applied.get(migration.number)
    if migration.number == 0:
        return not _is_replaceable(applied) or (
            known is not None and known[1] == migration.checksum
        )
    if known is not None and known[1] != migration.checksum:
        raise SchemaMismatch(
            f"{migration.name} was changed after it was applied: this database was made by another"
            " version of Laneway; use that version, or another database (LANEWAY_DATABASE_URL,"
            " or LANEWAY_DATA_DIR for an embedded one)"
        )
    return known is not None


def _is_replaceable(applied: Applied) -> bool:
    """Whether the functions there are no newer than ours: newer code brought its own."""
    return not applied.keys() - {m.number for m in migrations()} - {0}


def _applied(conn: psycopg.Connection[tuple[Any, ...]]) -> Applied:
    if conn.execute("select to_regclass('laneway.migrations')").fetchone() == (None,):
        return {}
    rows = conn.execute(
        "select number, name, checksum, safe_with from laneway.migrations"
    ).fetchall()
    return {number: (name, checksum, safe) for number, name, checksum, safe in rows}


def status(dsn: str) -> MigrationStatus:
    """What is applied, what is missing, what the database has that this code does not know."""
    with _connected(dsn) as conn:
        applied = _applied(conn)
    return _compared(applied)


def standing() -> Statement[MigrationStatus]:
    """The same of a database that has our schema, on a connection that is there."""
    return Statement(
        "health/read_migrations", lambda rows: _compared({r[0]: (r[1], r[2], r[3]) for r in rows})
    )


def _compared(applied: Applied) -> MigrationStatus:
    ours = {m.number: m for m in migrations()}
    pending = [m.name for m in ours.values() if m.number not in applied]
    if not applied or not _is_applied(applied, definitions()):
        pending.append(definitions().name)
    return MigrationStatus(
        applied=[name for number, (name, _, _) in sorted(applied.items()) if number in ours],
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


def check(dsn: str, code: str) -> None:
    """Refuses to go on where the schema is too old for this code, or too new."""
    with _connected(dsn) as conn:
        applied = _applied(conn)
    missing = [m.name for m in migrations() if m.number not in applied and m.phase == "pre"]
    if not missing and not _is_applied(applied, definitions()):
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
    """The SQL that `migrate` would run, for people who apply it by other means."""
    parts = [BOOTSTRAP.strip()]
    wanted = [m for m in migrations() if m.number >= first and (last is None or m.number <= last)]
    parts.extend(
        f"-- {m.name} --\nbegin;\nselect pg_advisory_xact_lock({LOCK});\n{m.sql.strip()}\n"
        f"insert into laneway.migrations (number, name, checksum, safe_with)\n"
        f"values ({m.number}, '{m.name}', '{m.checksum}', '{m.safe_with}')\n"
        f"on conflict (number) do update set checksum = excluded.checksum;\ncommit;"
        for m in (*wanted, *([definitions()] if last is None else []))
    )
    return "\n\n".join(parts) + "\n"
