"""The privileges of each database role: exactly those that its statements need.

rights.py and function_rights.py list what statements and functions need. Tests run the statements
of every role with these grants, and again with one of them missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

from psycopg.sql import SQL, Composable, Identifier, Literal

from laneway.domain.text import check_text
from laneway.errors import InvalidInput
from laneway.store.function_rights import FUNCTIONS
from laneway.store.older_names import OLDER_NAMES
from laneway.store.rights import (
    ALL_ROLES,
    EARLIER,
    EVERYONE,
    OWNING_ROLES,
    PUBLIC_VIEW,
    ROLES,
    STATEMENTS,
)

SEQUENCES: Final = frozenset({"events_id_seq", "jobs_seq_seq"})
NAME_BYTES: Final = 63
# Functions that this version calls in addition to one that the previous version called.
_SUCCESSORS: Final = {
    "submit": ("submit_batch", "send_event", "send_events"),
    "measure": ("is_current_publisher",),
    "hold_limits": ("note_wait",),
}
# Functions that this version calls in addition for roles that may search jobs.
_WITH_SEARCH: Final = ("find_ids", "finished_steps", "asked_waits")
# A database role that may call all of these has the Laneway role, granted by any version: no other
# Laneway role may call them all. Workers and servers of a new version start before the grants run
# again, so `migrate` grants them what they need now.
_ROLE_FUNCTIONS: Final = {
    "server": frozenset({
        "adopt_type", "cancel", "claim", "heartbeat", "lane_of", "measure", "peek", "report",
        "reprioritize", "retry", "settle", "submit",
    }),
    "worker": frozenset({
        "adopt_type", "claim", "heartbeat", "peek", "report", "settle",
    }),
}  # fmt: skip


class Privilege(NamedTuple):
    """One right on one object of the schema laneway."""

    kind: str
    name: str
    right: str


@cache
def privileges(role: str) -> frozenset[Privilege]:
    """All privileges of a role besides usage of the schema."""
    lines = [line for name in ROLES[role] for line in STATEMENTS[name]]
    # Programs of landed versions run with these grants too.
    lines += [
        f"execute on {old}" for old, new in OLDER_NAMES.items() if f"execute on {new}" in lines
    ]
    lines += [*EVERYONE, *(PUBLIC_VIEW if "jobs/list_jobs" in ROLES[role] else ())]
    return frozenset(expand(lines))


def needed(role: str) -> frozenset[Privilege]:
    """The privileges that this version needs, without those only for the previous version."""
    lines = [line for name in ROLES[role] for line in STATEMENTS[name] if line not in EARLIER]
    return frozenset(expand([*lines, *EVERYONE]))


def expand(lines: Iterable[str]) -> Iterable[Privilege]:
    for line in lines:
        rights, _, name = line.partition(" on ")
        if rights == "execute":
            yield Privilege("function", name, "execute")
            yield from expand(FUNCTIONS[name])
        else:
            kind = "sequence" if name in SEQUENCES else "table"
            yield from (Privilege(kind, name, right) for right in rights.split())


def roles_with(name: str, statement: str | None = None) -> list[str]:
    """The Laneway roles that run the statement; if none, those with a right on the object `name`.

    The object is a table, sequence or function, or the schema.
    """
    if running := [role for role in ROLES if statement in ROLES[role]]:
        return running
    is_schema = name == "laneway"
    return [role for role in ROLES if is_schema or any(p.name == name for p in privileges(role))]


def grants_script(roles: Sequence[str], to: str, owner: str, *, keep: bool = False) -> str:
    """The SQL of `grants` in one transaction: running programs never see half of it."""
    return f"begin;\n{grants(roles, to, owner, keep=keep)}commit;\n"


def grants(roles: Sequence[str], to: str, owner: str, *, keep: bool = False) -> str:
    """SQL that grants a database role what these Laneway roles need, and nothing else.

    `keep`: also what it has, because programs of an earlier version still run.
    """
    for role in roles:
        if role not in ALL_ROLES:
            raise InvalidInput("role", f"must be one of {', '.join(ALL_ROLES)}, not {role!r}")
        if role in OWNING_ROLES and len(roles) > 1:
            raise InvalidInput(
                "role", f"{role} needs a separate database role, without other roles"
            )
    for field, name in (("to", to), ("owner", owner)):
        check_text(name, field, max_bytes=NAME_BYTES)
        # The name appears in a dollar-quoted block and in a comment, which ends at a line break.
        if not name.isprintable() or "$" in name:
            raise InvalidInput(field, "must be printable text without '$'")
    lines = [f"-- {', '.join(roles)}: run it in Laneway's database as a superuser or its owner."]
    if "owner" in roles:
        lines += _owner(to)
    if "migrator" in roles:
        lines += _migrator(to, owner)
    wanted = {p for role in roles if role in ROLES for p in privileges(role)}
    if wanted:
        lines += _render(wanted, to, keep=keep)
    if "server" in roles:
        lines.append(_format(_ROW_SECURITY, name=Identifier(to)))
    return "\n".join(lines) + "\n"


def regrant(role: str, functions: Iterable[str]) -> list[str]:
    """SQL that lets a database role call these functions, with all rights they need now.

    `role` is quoted. A role keeps the functions that it could call before an upgrade. A role with
    all functions of a worker or server gets what that Laneway role needs now.
    """
    callable_now = [name for name in functions if name in FUNCTIONS]
    callable_now += [new for name in callable_now for new in _SUCCESSORS.get(name, ())]
    callable_now += [old for old, new in OLDER_NAMES.items() if new in callable_now]
    wanted = set(expand(f"execute on {name}" for name in callable_now))
    if Privilege("function", "search_jobs", "execute") in wanted:
        wanted |= set(expand(f"execute on {name}" for name in _WITH_SEARCH))
    for laneway_role, mark in _ROLE_FUNCTIONS.items():
        if mark.issubset(callable_now):
            wanted |= privileges(laneway_role)
    return _granting(wanted, role)


def _format(text: SQL, **names: Composable) -> str:
    return text.format(**names).as_string(None)


_TAKE_OVER: Final = SQL("""\
-- Owns the schema and everything in it. It needs no login: the migrator acts as it. This locks
-- every table briefly: if it cannot get a lock within 200 ms, it fails instead of delaying
-- submits. Then run it again.
do $owner$
declare
    thing text;
begin
    perform set_config('lock_timeout', '200ms', true);
    execute format('grant create on database %I to %I', current_database(), {name});
    -- On an empty database, the migrator creates the schema with `laneway db migrate`.
    if to_regnamespace('laneway') is null then
        return;
    end if;
    for thing in select format('table laneway.%I', relname) from pg_class
                  where relnamespace = 'laneway'::regnamespace and relkind in ('r', 'v')
                 union all
                 select format('type laneway.%I', relname) from pg_class
                  where relnamespace = 'laneway'::regnamespace and relkind = 'c'
                 union all
                 select format('function %s', oid::regprocedure) from pg_proc
                  where pronamespace = 'laneway'::regnamespace loop
        execute format('alter %s owner to %I', thing, {name});
    end loop;
    alter schema laneway owner to {owner};
    revoke execute on all functions in schema laneway from public;
end $owner$;
-- Only grantees may call functions, also those of later migrations.
alter default privileges for role {owner} revoke execute on functions from public;""")


# Row-level security hides rows that no policy allows: one policy allows all rows to all roles, a
# second one restricts the server's role. views.sql repeats it, because views ignore policies.
_ROW_SECURITY: Final = SQL("""\
-- A second line of defense behind the server's checks: in a transaction with
-- `set local laneway.workspaces`, the server sees and stores only jobs of those workspaces. Other
-- roles are not restricted, but unless they own the table or have bypassrls, they store batches by
-- INSERT, because COPY is refused. This locks laneway.jobs briefly: if it cannot get the lock
-- within 200 ms, it fails instead of delaying submits. Then run it again.
do $policy$
begin
    perform set_config('lock_timeout', '200ms', true);
    -- No notice about a policy that does not exist yet.
    perform set_config('client_min_messages', 'warning', true);
    alter table laneway.jobs enable row level security;
    drop policy if exists everybody on laneway.jobs;
    create policy everybody on laneway.jobs using (true) with check (true);
    drop policy if exists {name} on laneway.jobs;
    create policy {name} on laneway.jobs as restrictive to {name} using (
        (select coalesce(current_setting('laneway.workspaces', true), '') = '')
        or workspace = any (
            (select nullif(current_setting('laneway.workspaces', true), '')::text[])::text[]));
end $policy$;""")


def _owner(to: str) -> list[str]:
    return [_format(_TAKE_OVER, name=Literal(to), owner=Identifier(to))]


def _migrator(to: str, owner: str) -> list[str]:
    names = {"to": Identifier(to), "owner": Identifier(owner)}
    return [
        "-- Logs in and runs `laneway db migrate`; the owner owns what it creates.",
        _format(SQL("grant {owner} to {to};"), **names),
        _format(SQL("alter role {to} set role to {owner};"), **names),
    ]


def _render(wanted: set[Privilege], to: str, *, keep: bool) -> list[str]:
    grantee = Identifier(to)
    lines = []
    if not keep:
        lines.append("-- Exactly what its statements need: removes the rights of earlier versions.")
        lines += [
            _format(
                SQL("revoke all on all {kind} in schema laneway from {to};"), kind=kind, to=grantee
            )
            for kind in (SQL("tables"), SQL("sequences"), SQL("functions"))
        ]
    lines.append(_format(SQL("grant usage on schema laneway to {to};"), to=grantee))
    return lines + _granting(wanted, grantee.as_string(None))


def _granting(wanted: set[Privilege], grantee: str) -> list[str]:
    lines = []
    order = {"table": 0, "sequence": 1, "function": 2}
    objects = sorted({(p.kind, p.name) for p in wanted}, key=lambda o: (order[o[0]], o[1]))
    for kind, name in objects:
        rights = sorted(p.right for p in wanted if (p.kind, p.name) == (kind, name))
        target = f"laneway.{name}" if kind == "table" else f"{kind} laneway.{name}"
        lines.append(f"grant {', '.join(rights)} on {target} to {grantee};")
    return lines
