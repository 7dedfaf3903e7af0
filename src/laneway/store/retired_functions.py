"""Functions that a migration replaced: renamed, and dropped when no statement can call them.

A statement finds a function when it is parsed and calls it by its number. PostgreSQL has no lock
for that, so dropping the function at once would make the call fail. A transaction that begins after
the commit of the migration finds only the new function: when all earlier ones have ended, nothing
can call the old one.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg import errors as pg

from laneway.observability.safe_logger import SafeLogger
from laneway.store.migration_files import dropping

PATIENCE_S = 2.0
PAUSE_S = 0.05
_RETIRED = """
select f.oid::bigint from pg_proc f
 where f.pronamespace = to_regnamespace('laneway') and f.proname ~ '^retired_[0-9]+_'
"""
# Every transaction holds a lock on its virtual number. All roles see these locks, but not when a
# transaction of another role began. Autovacuum calls no function of Laneway.
_TRANSACTIONS = """
select l.virtualxid from pg_locks l join pg_stat_activity a on a.pid = l.pid
 where l.virtualxid = l.virtualtransaction and a.datname = current_database()
   and l.pid <> pg_backend_pid() and a.backend_type is distinct from 'autovacuum worker'
"""
log = SafeLogger("laneway")


def drop_retired(conn: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Drops them if earlier transactions end soon; otherwise the next migration does."""
    functions = [row[0] for row in conn.execute(_RETIRED).fetchall()]
    if not functions:
        return
    deadline = time.monotonic() + PATIENCE_S
    earlier = _transactions(conn)
    while earlier := earlier & _transactions(conn):
        if time.monotonic() > deadline:
            log.info(
                "%d replaced functions stay for transactions that began before:"
                " the next `laneway db migrate` drops them",
                len(functions),
            )
            return
        time.sleep(PAUSE_S)
    try:
        conn.execute(dropping(functions).encode())
    except (pg.LockNotAvailable, pg.InsufficientPrivilege) as error:
        conn.rollback()
        log.info("replaced functions stay until the next `laneway db migrate`: %s", error)


def _transactions(conn: psycopg.Connection[tuple[Any, ...]]) -> set[str]:
    """The transactions of this database that are running."""
    return {row[0] for row in conn.execute(_TRANSACTIONS).fetchall()}
