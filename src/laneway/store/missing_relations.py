"""Tables, views, sequences and functions that the applied migrations created and that are gone."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from laneway.store.function_rights import FUNCTIONS
from laneway.store.grants import expand
from laneway.store.rights import STATEMENTS

CURE_RESTORE: Final = (
    "a restore failed half-way, or they were dropped; `laneway db migrate` does not create them"
    " again: restore the whole dump into an empty database and read the errors of pg_restore"
)
_MISSING: Final = """
select w.name
  from pg_catalog.unnest(%s::text[]) as w (name)
 where not exists (
           select from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
            where n.nspname = 'laneway' and c.relname = w.name)
union all
select w.name || '()'
  from pg_catalog.unnest(%s::text[]) as w (name)
 where not exists (
           select from pg_catalog.pg_proc f
             join pg_catalog.pg_namespace n on n.oid = f.pronamespace
            where n.nspname = 'laneway' and f.proname = w.name)
 order by 1
"""


def find_missing(conn: psycopg.Connection[Any]) -> list[str]:
    """Names of what statements use and the schema lacks; functions end in `()`."""
    lines = {line for lines in (*STATEMENTS.values(), *FUNCTIONS.values()) for line in lines}
    used = set(expand(lines))
    relations = sorted({each.name for each in used if each.kind != "function"})
    functions = sorted({*FUNCTIONS, *(each.name for each in used if each.kind == "function")})
    return [name for (name,) in conn.execute(_MISSING, [relations, functions]).fetchall()]


def describe(missing: list[str], shown: int = 10) -> str:
    more = f" and {len(missing) - shown} more" if len(missing) > shown else ""
    return f"the migrations are recorded, but these are missing: {', '.join(missing[:shown])}{more}"
