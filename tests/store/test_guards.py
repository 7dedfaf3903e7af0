"""Input that the functions refuse from every caller, and locks that they do not wait for."""

from __future__ import annotations

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import leases
from laneway.store.database import connection_options
from laneway.store.leases import Verdict
from laneway.store.sync_connection import SyncConnection
from tests.support.store_client import StoreClient


def test_claim_refuses_a_snapshot_older_than_its_locks(db: StoreClient) -> None:
    db.submit()
    db.do("set default_transaction_isolation = 'repeatable read'")
    with pytest.raises(DatabaseUnavailable, match="read committed"):
        db.claim()
    db.do("set default_transaction_isolation = 'read committed'")
    assert db.claimed()


def test_our_connections_are_always_read_committed(dsn: str) -> None:
    change = "do $$ begin execute format('alter database %I {}', current_database()); end $$"
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(change.format("set default_transaction_isolation = serializable").encode())
        try:
            options = connection_options(dsn, Settings.load(), "test")
            with psycopg.connect(dsn, **options) as conn:
                assert conn.execute("show transaction_isolation").fetchone() == ("read committed",)
        finally:
            admin.execute(change.format("reset default_transaction_isolation").encode())


def test_options_in_dsn_are_kept(dsn: str) -> None:
    own = psycopg.conninfo.make_conninfo(
        dsn, options="-c work_mem=99MB", application_name="shop", connect_timeout=3
    )
    with psycopg.connect(own, **connection_options(own, Settings.load(), "test")) as conn:
        assert conn.execute("show work_mem").fetchone() == ("99MB",)
        assert conn.execute("show application_name").fetchone() == ("shop",)
        assert conn.execute("show statement_timeout").fetchone() == ("30s",)


@pytest.mark.parametrize(
    "when",
    [
        "run_at => 'infinity'",
        "run_at => '-infinity'",
        "delay => interval '20000 years'",
        "run_at => '9999-12-31'",
    ],
)
def test_job_cannot_be_put_off_for_ever(db: StoreClient, when: str) -> None:
    with pytest.raises(psycopg.Error, match=r"(run_at|delay): ") as refused:
        db.do(f"select laneway.submit('t', {when})")
    assert refused.value.sqlstate == "LW001"
    assert db.one("select count(*) from laneway.jobs") == 0


def test_sql_submit_refuses_payload_over_one_mebibyte(db: StoreClient) -> None:
    with pytest.raises(psycopg.Error, match="payload: at most 1048576 bytes"):
        db.do("select laneway.submit('t', to_jsonb(repeat('x', 1048576)))")


def test_locked_job_does_not_keep_others_from_ending(db: StoreClient, dsn: str) -> None:
    held, free = db.running(), db.running()
    with psycopg.connect(dsn) as other:
        other.execute("select laneway.cancel(%s, 'me', null)", [held.seq])
        answers = db.run(leases.settle([Verdict(held, "finish"), Verdict(free, "finish")]))
        assert [(a.seq, a.answer) for a in answers] == [(held.seq, "busy")]
        assert db.places(free.seq) == ["outcome"]
        other.rollback()
    assert db.settle(held, "finish") is None
    assert db.places(held.seq) == ["outcome"]


def test_error_named_like_ours_is_still_the_workers_own(db: StoreClient) -> None:
    claim = db.running(max_retries=0)
    error = '{"type": "WorkerLost", "message": "mine"}'
    for _ in range(2):
        answer = db.settle(claim, "fail", error=error)
        assert answer is not None
        assert answer.answer == "accepted"


def test_sync_connection_comes_back_after_it_was_killed(dsn: str) -> None:
    connection = SyncConnection(dsn, connection_options(dsn, Settings.load(), "test"))
    try:
        assert connection.run(leases.heartbeat([], [])) == []
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'laneway test' and datname = current_database()"
            )
        with pytest.raises(DatabaseUnavailable):
            connection.run(leases.heartbeat([], []))
        assert connection.run(leases.heartbeat([], [])) == []
    finally:
        connection.close()


def test_wrong_input_names_the_field(db: StoreClient) -> None:
    with pytest.raises(InvalidInput) as refused:
        db.submit(unique_key="")
    assert refused.value.field == "unique_key"
