"""Only transactions that can add or return a job hold back the floors of claims."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from laneway.domain.job import NewJob, new_job_id
from laneway.store import jobs
from laneway.store.database import run_sync
from laneway.store.lanes import find_horizon
from tests.conftest import Server
from tests.support.store_client import Conn, StoreClient

Act = Callable[[Conn], object]


def submit_in_python(conn: Conn) -> object:
    return run_sync(conn, jobs.submit(NewJob(id=new_job_id(), job_type="t")))


HIDES: dict[str, str | Act] = {
    "a submit": "select laneway.submit('t')",
    "a submit of the library": submit_in_python,
    "a number drawn for later": "select nextval('laneway.jobs_seq_seq')",
    "a number drawn in a part that was rolled back": (
        "savepoint a; select nextval('laneway.jobs_seq_seq'); rollback to savepoint a"
    ),
    "a job locked": "select from laneway.ready for update",
    "a job deleted": "delete from laneway.ready",
}
HIDES_NOTHING: dict[str, str | Act] = {
    "a write elsewhere": "create table laneway_elsewhere (n integer)",
    "a look at the jobs": "select from laneway.ready; select from laneway.jobs_seq_seq",
    "a job ended": "delete from laneway.outcome",
    "an analysis of the table": "analyze laneway.ready",
    "a lock that vacuum takes": "lock laneway.ready in share update exclusive mode",
}


def act(conn: Conn, what: str | Act) -> int:
    """Run it in a transaction that stays open; return the transaction id."""
    xid = int(conn.execute("select pg_current_xact_id()::text").fetchall()[0][0])
    if isinstance(what, str):
        conn.execute(what.encode())
    else:
        what(conn)
    return xid


@pytest.mark.parametrize("what", HIDES.values(), ids=list(HIDES))
def test_transaction_that_can_hide_a_job_is_the_horizon(db: StoreClient, what: str | Act) -> None:
    db.submit("t")
    with psycopg.connect(db.dsn) as writer:
        xid = act(writer, what)
        # Not equal: an older transaction of the server may still be ending.
        assert db.run(find_horizon()) <= xid
        writer.rollback()
    assert db.run(find_horizon()) > xid


@pytest.mark.parametrize("what", HIDES_NOTHING.values(), ids=list(HIDES_NOTHING))
def test_transaction_that_hides_no_job_is_looked_past(db: StoreClient, what: str | Act) -> None:
    db.submit("t")
    with psycopg.connect(db.dsn) as writer:
        xid = act(writer, what)
        db.submit("t")
        assert db.run(find_horizon()) > xid
        writer.rollback()


def test_transaction_of_another_database_is_looked_past(
    db: StoreClient, postgres: Server, template_db: str
) -> None:
    with postgres.database(template_db) as elsewhere, psycopg.connect(elsewhere) as writer:
        xid = act(writer, "select laneway.submit('t')")
        db.submit("t")
        assert db.run(find_horizon()) > xid
        writer.rollback()
