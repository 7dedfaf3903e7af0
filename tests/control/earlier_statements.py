"""The statements of processes of earlier versions, run with the rights of a role."""

from __future__ import annotations

from uuid import uuid4

from laneway.store.grants import privileges
from laneway.store.older_names import OLDER_NAMES
from tests.support.job_factory import JobFactory


def run_earlier_worker(factory: JobFactory) -> None:
    """Clear counters as workers of the previous version do."""
    for table in ("slot_usage", "limit_usage"):
        query = f"delete from laneway.{table} where worker_id = %s and running = 0"
        factory.conn.execute(query.encode(), [uuid4()])


def run_earlier_server(factory: JobFactory) -> None:
    """Store a batch as servers of the previous version do."""
    row = factory.conn.execute("select nextval('laneway.jobs_seq_seq')").fetchone()
    assert row is not None
    for text in (
        (
            "insert into laneway.jobs (seq, id, job_type, payload)"
            " values (%(n)s, gen_random_uuid(), 'early', '{}')"
        ),
        (
            "insert into laneway.job_keys values ('default', 'early', %(n)s::text, %(n)s)"
            " on conflict do nothing returning seq"
        ),
        "insert into laneway.deadlines (seq, at) values (%(n)s, now())",
        "insert into laneway.ready (seq, job_type, rank) values (%(n)s, 'early', 0)",
        (
            "insert into laneway.delayed (seq, job_type, rank, run_at)"
            " select 0, 'early', 0, now() where %(n)s < 0"
        ),
        "select laneway.place(seq, now(), null) from laneway.jobs where seq < 0 and %(n)s > 0",
    ):
        factory.conn.execute(text.encode(), {"n": row[0]})


def run_earlier_reader(factory: JobFactory) -> None:
    """Read usage and jobs as the previous version does."""
    factory.conn.execute("select from laneway.jobs_as_text limit 0")
    for table in ("slot_usage", "limit_usage"):
        factory.conn.execute(f"select sum(running) from laneway.{table}".encode())


def run_older_names(factory: JobFactory, role: str) -> None:
    """Call functions by their older names, as landed versions do."""
    granted = {p.name for p in privileges(role) if p.kind == "function"}
    for name in OLDER_NAMES.keys() & granted:
        row = factory.conn.execute(
            "select pronargs from pg_proc where oid = to_regproc('laneway.' || %s::text)", [name]
        ).fetchone()
        assert row is not None
        # PostgreSQL checks the right to call it before the condition.
        nulls = ", ".join(["null"] * row[0])
        factory.conn.execute(f"select laneway.{name}({nulls}) where false".encode())


def read_migrations(factory: JobFactory) -> None:
    factory.conn.execute("select number from laneway.migrations")
