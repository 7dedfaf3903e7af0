"""The SQL files of the schema, and the text of the transaction that applies each of them.

A transaction is one message to the server, from `begin` to `commit`: a client that freezes or loses
its network cannot leave it open.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from psycopg.sql import SQL, Literal

from laneway.domain.lane import Lane
from laneway.domain.lane_setup import KEPT, state_of
from laneway.errors import SchemaMismatch

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
RECORD = SQL("""\
insert into laneway.migrations (number, name, checksum, safe_with) values ({}, {}, {}, {})
on conflict (number) do update
   set checksum = excluded.checksum, safe_with = excluded.safe_with,
       applied_at = clock_timestamp();""")
# A migration waits at most 200 ms for all its locks together: it holds the first while it waits
# for the next. The minimum of 50 ms lets short transactions of a slow server finish.
_LOCK_TIMEOUT = """\
select set_config('lock_timeout', greatest(50, 200 - extract(epoch from clock_timestamp()
    - current_setting('laneway.migration_began')::timestamptz) * 1000)::integer::text, true);"""
_SEED = """
do $seed$ begin
    if not exists (select from laneway.jobs) and not exists (select from laneway.workers)
       and not exists (select from laneway.control_history) then
        perform laneway.load_lanes({}::jsonb,
            array(select l.name from laneway.worker_lanes l where l.name <> all ({}::text[])),
            'laneway db migrate');
        delete from laneway.job_types t where t.published_at is null and t.name <> all ({}::text[]);
    end if;
end $seed$;"""
_HELPERS = ("retire_function", "replace_function", "replace_view", "replace_trigger")
_FUNCTION = "select laneway.replace_function("
_QUOTE = "laneway_definition"
_BEGAN = "select set_config('laneway.migration_began', clock_timestamp()::text, true);"
_TOKENS = re.compile(
    # An unclosed token extends to the end of the text: no backtracking.
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|\b[eE]'(?:[^'\\]|\\.|'')*+(?:'|\\?\Z)|'(?:[^']|'')*+(?:'|\Z)
        |"(?:[^"]|"")*+(?:"|\Z)|(?P<tag>\$\w*\$).*?(?:(?P=tag)|\Z)|(?P<end>;)""",
    re.DOTALL | re.VERBOSE,
)
_DEFINITION = re.compile(
    r"^create or replace (function|view|trigger) (?:laneway\.)?(\w+)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its phase (pre or post deployment), the oldest code safe with it."""

    number: int
    name: str
    sql: str
    phase: str
    safe_with: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def is_definitions(self) -> bool:
        return self.number == 0


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
                raise SchemaMismatch(
                    f"{file.name}: needs the lines `-- phase:` and `-- safe-with:`"
                )
            found.append(Migration(int(match[1]), file.name[:-4], text, phase, safe_with))
    return tuple(sorted(found, key=lambda m: m.number))


@cache
def definitions() -> Migration:
    """The functions and views of this code, as migration number 0."""
    texts = {
        file.name: file.read_text("utf-8")
        for file in files("laneway.store").joinpath("definitions").iterdir()
        if file.name.endswith(".sql")
    }
    # Bodies refer to each other, so they cannot be checked before all exist.
    parts = ["set local check_function_bodies = off;"]
    parts += [f"-- {name}\n{texts[name].strip()}\n" for name in sorted(texts)]
    newest = migrations()[-1]
    return Migration(0, "definitions", "\n".join(parts), "pre", newest.safe_with)


def statements(text: str) -> Iterator[str]:
    """The statements of an SQL text, each with the comments before it."""
    start = 0
    for token in _TOKENS.finditer(text):
        if token["end"]:
            yield text[start : token.end()].strip()
            start = token.end()
    if re.sub(r"--[^\n]*|\s", "", text[start:]):
        yield f"{text[start:].strip()};"


@cache
def _upgrade(name: str) -> str:
    return files("laneway.store").joinpath("upgrades", f"{name}.sql").read_text("utf-8").strip()


def transaction(migration: Migration, *, first: str = "", after: Iterable[str] = ()) -> str:
    """The SQL that applies a migration in one transaction.

    `first` runs under the migration lock; `after` are statements at the end.
    """
    parts = [*_beginning(), BOOTSTRAP.strip(), first, _BEGAN]
    if migration.is_definitions:
        after = (*after, _upgrade("retired_rights"))
    for statement in (*_body(migration), *after):
        # Replacing a function locks no table.
        parts += [statement] if statement.startswith(_FUNCTION) else [_LOCK_TIMEOUT, statement]
    record = (migration.number, migration.name, migration.checksum, migration.safe_with)
    parts += [RECORD.format(*map(Literal, record)).as_string(None), "commit;"]
    return "\n".join(part for part in parts if part)


def dropping(functions: Iterable[int]) -> str:
    """The SQL that drops retired functions in one transaction."""
    numbers = ",".join(map(str, functions))
    setting = f"select set_config('laneway.retired', '{{{numbers}}}', true);"
    return "\n".join([*_beginning(), setting, _upgrade("drop_retired"), "commit;"])


def _beginning() -> list[str]:
    # Waits only for other migrations, and holds no other lock meanwhile.
    wait = ["set local lock_timeout = '30s';", f"select pg_advisory_xact_lock({LOCK});"]
    # The statements after the wait must see the work of the other migration.
    return ["begin isolation level read committed;", _upgrade("bounds"), *wait]


def _body(migration: Migration) -> Iterator[str]:
    if not migration.is_definitions:
        yield from statements(migration.sql)
        return
    yield from map(_upgrade, ("keep_rights", *_HELPERS))
    # Statements that need table locks come last, to hold them only briefly.
    last = []
    for statement in statements(migration.sql):
        found = _DEFINITION.search(statement)
        if found is None:
            yield statement
            continue
        if f"${_QUOTE}$" in statement:
            raise SchemaMismatch(f"laneway.{found[2]}: the definition must not contain ${_QUOTE}$")
        text = f"${_QUOTE}${statement.removesuffix(';')}${_QUOTE}$"
        replace = f"select laneway.replace_{found[1]}('{found[2]}', {text}"
        if found[1] == "function":
            yield f"{replace});"
        else:
            yield f"{replace}, false);"
            last.append(f"{replace}, true);")
    yield _BEGAN
    yield from last
    yield _upgrade("restore_rights")
    yield from (f"drop function laneway.{name};" for name in _HELPERS)


def replace_seeds(lanes: Sequence[Lane]) -> str:
    """The statement that replaces the lanes of a database that was never used."""
    states = json.dumps([{**state_of(lane), "updated_by": "laneway db migrate"} for lane in lanes])
    kept = [*KEPT, *(lane.name for lane in lanes)]
    types = [job_type for lane in lanes for job_type in lane.job_types]
    return SQL(_SEED).format(Literal(states), Literal(kept), Literal(types)).as_string(None)


def script(wanted: Iterable[Migration]) -> str:
    """The same SQL for applying migrations with other tools."""
    return "\n\n".join(f"-- {m.name} --\n{transaction(m)}" for m in wanted) + "\n"
