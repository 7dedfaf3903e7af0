"""Rights that a database role lacks, and the command that grants them and revokes none."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection

from laneway.errors import MissingRight
from laneway.store.grants import Privilege, needed, privileges
from laneway.store.rights import ROLES

SHOWN: Final = 5
# Catalogs, not regclass: a name lookup needs usage of the schema.
_RIGHTS: Final = """
with wanted as (
    select w.kind, w.name, w.privilege
      from rows from (
               pg_catalog.unnest(%s::text[]),
               pg_catalog.unnest(%s::text[]),
               pg_catalog.unnest(%s::text[])
           ) as w (kind, name, privilege)
), ours as (
    select n.oid from pg_catalog.pg_namespace n where n.nspname = 'laneway'
)
select 'schema', 'laneway', 'usage', pg_catalog.has_schema_privilege(ours.oid, 'usage'),
       pg_catalog.quote_ident(current_user)
  from ours
union all
select w.kind, w.name, w.privilege,
       case w.kind
           when 'table' then case
               -- Hand-made grants on single columns may be sufficient.
               when w.privilege in ('select', 'insert', 'update')
                   then pg_catalog.has_any_column_privilege(c.oid, w.privilege)
               else pg_catalog.has_table_privilege(c.oid, w.privilege)
           end
           else pg_catalog.has_sequence_privilege(c.oid, w.privilege)
       end, null
  from wanted w cross join ours
  join pg_catalog.pg_class c on c.relnamespace = ours.oid and c.relname = w.name
 where w.kind in ('table', 'sequence')
union all
select w.kind, w.name, w.privilege, pg_catalog.has_function_privilege(f.oid, w.privilege), null
  from wanted w cross join ours
  join pg_catalog.pg_proc f on f.pronamespace = ours.oid and f.proname = w.name
 where w.kind = 'function'
 order by 1, 2, 3
"""


class LoginRights(NamedTuple):
    """The rights of a database role, of those that Laneway roles grant; its name is quoted."""

    login: str
    held: frozenset[Privilege]
    lacking: frozenset[Privilege]

    @classmethod
    def of(cls, rows: list[Any]) -> LoginRights:
        login = next((row[4] for row in rows if row[4] is not None), "NAME")
        held = frozenset(Privilege(*row[:3]) for row in rows if row[3])
        return cls(login, held, frozenset(Privilege(*row[:3]) for row in rows if not row[3]))

    def grant_command(self, wanted: str) -> str:
        """The command that grants this Laneway role and keeps every right held now."""
        kept = self.held - {_USAGE}
        # The fewest rights that include those held now: the others would be revoked.
        sets = [
            (sum(len(privileges(role)) for role in chosen), chosen)
            for size in range(1, len(ROLES) + 1)
            for chosen in combinations(reversed(ROLES), size)
            if wanted in chosen
            and kept <= frozenset().union(*(privileges(role) for role in chosen))
        ]
        chosen = min(sets)[1] if sets else (wanted,)
        options = " ".join(f"--role {role}" for role in chosen)
        return f"laneway db grants {options} --to {self.login}"


_USAGE: Final = Privilege("schema", "laneway", "usage")


def _wanted() -> list[list[str]]:
    every = sorted(frozenset[Privilege]().union(*(privileges(role) for role in ROLES)))
    return [list(each) for each in zip(*every, strict=True)]


def cure(command: str) -> str:
    return f"as the schema's owner, run the SQL of `{command}`"


async def with_command(error: MissingRight, conn: AsyncConnection[Any]) -> MissingRight:
    """The error with a command for the connection's role, whose rights are read for it."""
    if not error.roles:
        return error
    cursor = await conn.execute(_RIGHTS, _wanted())
    command = LoginRights.of(await cursor.fetchall()).grant_command(error.roles[-1])
    return MissingRight(error.message, cure(command), error.roles)


def refuse_missing_rights(conn: psycopg.Connection[Any], role: str) -> None:
    """Raises MissingRight if the connection's role lacks a right of this Laneway role."""
    rights = LoginRights.of(conn.execute(_RIGHTS, _wanted()).fetchall())
    missing = [_describe(each) for each in sorted(rights.lacking & {*needed(role), _USAGE})]
    if not missing:
        return
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    raise MissingRight(
        f"the database role {rights.login} lacks rights that a {role} needs:"
        f" {', '.join(missing[:SHOWN])}{more}",
        cure(rights.grant_command(role)),
        (role,),
    )


def _describe(lacking: Privilege) -> str:
    kind = "" if lacking.kind == "table" else f"{lacking.kind} "
    name = lacking.name if lacking.kind == "schema" else f"laneway.{lacking.name}"
    return f"{lacking.right} on {kind}{name}"
