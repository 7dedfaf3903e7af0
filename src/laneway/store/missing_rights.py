"""Check for rights that a process needs and its database role lacks."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from laneway.errors import MissingRight
from laneway.store.grants import Privilege, needed

SHOWN: Final = 5
# Catalogs, not regclass: a name lookup needs usage of the schema.
_MISSING: Final = """
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
select 'schema', 'laneway', 'usage' from ours
 where not pg_catalog.has_schema_privilege(ours.oid, 'usage')
union all
select w.kind, w.name, w.privilege
  from wanted w cross join ours
  join pg_catalog.pg_class c on c.relnamespace = ours.oid and c.relname = w.name
 where case w.kind
           when 'table' then not case
               -- Hand-made grants on single columns may be sufficient.
               when w.privilege in ('select', 'insert', 'update')
                   then pg_catalog.has_any_column_privilege(c.oid, w.privilege)
               else pg_catalog.has_table_privilege(c.oid, w.privilege)
           end
           when 'sequence' then not pg_catalog.has_sequence_privilege(c.oid, w.privilege)
       end
union all
select w.kind, w.name, w.privilege
  from wanted w cross join ours
  join pg_catalog.pg_proc f on f.pronamespace = ours.oid and f.proname = w.name
 where w.kind = 'function' and not pg_catalog.has_function_privilege(f.oid, w.privilege)
 order by 1, 2, 3
"""


def refuse_missing_rights(conn: psycopg.Connection[Any], role: str) -> None:
    """Raises MissingRight if the connection's role lacks a right of this Laneway role."""
    wanted = sorted(needed(role))
    found = conn.execute(_MISSING, [list(each) for each in zip(*wanted, strict=True)]).fetchall()
    if not found:
        return
    row = conn.execute("select pg_catalog.quote_ident(current_user)").fetchone()
    name = row[0] if row is not None else "NAME"
    missing = [_describe(Privilege(*row)) for row in found]
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    raise MissingRight(
        f"the database role {name} lacks rights that a {role} needs:"
        f" {', '.join(missing[:SHOWN])}{more}",
        "as the schema's owner, run the SQL of"
        f" `laneway db grants --role {role} --to {name}` (repeat --role to keep its other roles)",
    )


def _describe(lacking: Privilege) -> str:
    kind = "" if lacking.kind == "table" else f"{lacking.kind} "
    name = lacking.name if lacking.kind == "schema" else f"laneway.{lacking.name}"
    return f"{lacking.right} on {kind}{name}"
