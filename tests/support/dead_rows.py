"""Dead rows stay while a transaction of any test on the same server may read them."""

from __future__ import annotations

import time

from tests.support.store_client import StoreClient

# Other tests keep transactions open, but none as long as this.
PATIENCE = 120.0
NOW = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
# A writer in any database is older than every snapshot that is taken meanwhile; a reader only keeps
# the rows of this one.
HAVE_ENDED = """
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= %(now)s
   and not exists (select from pg_stat_activity a
                    where coalesce(a.datname, current_database()) = current_database()
                      and a.pid <> pg_backend_pid() and a.backend_xmin::text::bigint < %(now)s)
"""


def wait_for_older_transactions(db: StoreClient) -> None:
    """Wait until a scan may mark the index entries of rows that are dead now."""
    now = db.one(NOW)
    deadline = time.monotonic() + PATIENCE
    while not db.conn.execute(HAVE_ENDED, {"now": now}).fetchall()[0][0]:
        assert time.monotonic() < deadline, "another transaction stays open"
        time.sleep(0.01)


def remove_dead_rows(db: StoreClient, *tables: str) -> None:
    """Vacuum the tables once no transaction can read their dead rows."""
    wait_for_older_transactions(db)
    for table in tables:
        db.do(f"vacuum (index_cleanup on) laneway.{table}")
