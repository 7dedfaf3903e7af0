"""Submitting inside the caller's transaction, through every kind of connection."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy

from laneway.client import Client
from laneway.domain.claim import Claim
from laneway.domain.states import Status
from laneway.errors import InvalidInput, MissingRight, NotFound, SchemaMismatch
from laneway.store.caller_connection import borrow, run_now
from laneway.store.caller_transaction import guard
from laneway.store.jobs import cancel
from tests.client.connections import ASYNC, SYNC, Async, Sync
from tests.support.store_client import StoreClient

OpenSync = Callable[[str], AbstractContextManager[Sync]]
OpenAsync = Callable[[str], AbstractAsyncContextManager[Async]]
over_sync = pytest.mark.parametrize("opened", SYNC.values(), ids=list(SYNC))
over_async = pytest.mark.parametrize("opened", ASYNC.values(), ids=list(ASYNC))

PAYLOAD = {
    "text": "tab\t, line\n, back\\slash, 'quote', \"quote\", %s :name $1 ünïcödé 😀",
    "n": 1.5,
}
OPTIONS: dict[str, Any] = {
    "priority": 7,
    "unique_key": "a:key ::text %(x)s",
    "workspace": "acme",
    "tags": ["a", 'b "c" \\', "{d,e}"],
    "max_retries": 1,
    "created_by": "me",
}


def count(db: StoreClient) -> int:
    return int(db.one("select count(*) from laneway.jobs"))


@over_sync
def test_job_is_there_when_the_callers_transaction_commits(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    with opened(dsn) as own:
        job = plain_client.sync.submit("t", PAYLOAD, **OPTIONS, conn=own.conn)
        assert (job.status, job.duplicate) == (Status.APPROVED, False)
        assert count(db) == 0
        assert db.claimed() == []
        own.commit()
    assert [claim.job_id for claim in db.claimed()] == [job.id]
    row = db.row("jobs", db.seq_of(job.id))
    assert row["payload"] == PAYLOAD
    assert {name: row[name] for name in OPTIONS} == OPTIONS


@over_sync
def test_transaction_reads_the_job_that_it_submitted(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    with opened(dsn) as own:
        job = plain_client.sync.submit("t", PAYLOAD, **OPTIONS, conn=own.conn)
        read = plain_client.sync.get(job.id, conn=own.conn)
        assert (read.payload, read.tags, read.attempts) == (PAYLOAD, tuple(OPTIONS["tags"]), ())
        own.commit()
        assert len(db.claimed()) == 1
        [attempt] = plain_client.sync.get(job.id, conn=own.conn).attempts
        assert (attempt.attempt, attempt.outcome, attempt.log) == (1, None, ())


@over_async
async def test_async_transaction_reads_the_job_that_it_submitted(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    async with opened(dsn) as own:
        job = await client.submit("t", PAYLOAD, conn=own.conn)
        assert (await client.get(job.id, conn=own.conn)).payload == PAYLOAD
        await own.commit()
        assert len(db.claimed()) == 1
        [attempt] = (await client.get(job.id, conn=own.conn)).attempts
        assert (attempt.attempt, attempt.log) == (1, ())


@over_sync
def test_nothing_is_there_when_the_callers_transaction_rolls_back(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    with opened(dsn) as own:
        plain_client.sync.submit("t", unique_key="k", conn=own.conn)
        plain_client.sync.submit_many([("t", {"n": 1})], conn=own.conn)
        own.rollback()
        assert count(db) == 0
        again = plain_client.sync.submit("t", unique_key="k", conn=own.conn)
        assert not again.duplicate
        own.commit()
    assert [claim.job_id for claim in db.claimed()] == [again.id]


@over_async
async def test_job_is_there_when_the_async_transaction_commits(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    async with opened(dsn) as own:
        job = await client.submit("t", PAYLOAD, **OPTIONS, conn=own.conn)
        assert (job.status, job.duplicate) == (Status.APPROVED, False)
        assert type(job.id).__module__ == "uuid"
        assert count(db) == 0
        assert db.claimed() == []
        await own.commit()
    assert [claim.job_id for claim in db.claimed()] == [job.id]
    row = db.row("jobs", db.seq_of(job.id))
    assert row["payload"] == PAYLOAD
    assert {name: row[name] for name in OPTIONS} == OPTIONS


@over_async
async def test_nothing_is_there_when_the_async_transaction_rolls_back(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    async with opened(dsn) as own:
        await client.submit("t", unique_key="k", conn=own.conn)
        await client.submit_many([("t", {"n": 1})], conn=own.conn)
        await own.rollback()
    assert count(db) == 0


BATCH: list[tuple[Any, ...]] = [
    ("t", PAYLOAD),
    ("t", {"n": 1}, OPTIONS),
    ("t", {"n": 2}, OPTIONS),
    ("t", {"n": 3}, {"delay": 60, "priority": -4}),
    ("t", {"n": 4}, {"run_at": datetime(2020, 5, 5, tzinfo=UTC)}),
    ("t", {"n": 5}, {"run_at": datetime.now(UTC) + timedelta(days=400)}),
]


def shown(db: StoreClient) -> list[tuple[Any, ...]]:
    """The rows of a batch, without columns that differ between runs."""
    return db.rows(
        "select j.job_type, j.workspace, j.payload, j.priority, j.max_retries, j.unique_key,"
        " j.tags, j.created_by, j.traceparent,"
        " j.run_at - case j.payload ->> 'n' when '3' then j.created_at else '2020-01-01' end,"
        " r.rank, r.fresh, r.attempt, r.retries, r.ready_at = j.created_at,"
        " d.rank, d.attempt, d.retries, d.run_at = j.run_at"
        " from laneway.jobs j left join laneway.ready r using (seq)"
        " left join laneway.delayed d using (seq) order by j.seq"
    )


def by_submit(plain: Any, db: StoreClient) -> list[tuple[Any, ...]]:
    for job_type, payload, *options in BATCH:
        plain.submit(job_type, payload, **(options[0] if options else {}))
    rows = shown(db)
    db.do("delete from laneway.jobs")
    for table in ("ready", "delayed", "job_keys"):
        db.do(f"delete from laneway.{table}")
    return rows


@over_sync
def test_batch_stores_same_rows_as_single_submits(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    expected = by_submit(plain_client.sync, db)
    assert len(expected) == len(BATCH) - 1
    with opened(dsn) as own:
        made = plain_client.sync.submit_many(BATCH, conn=own.conn)
        own.commit()
    assert shown(db) == expected
    assert [job.duplicate for job in made] == [False, False, True, False, False, False]
    assert made[2].id == made[1].id


@over_async
async def test_async_batch_stores_same_rows_as_single_submits(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    expected = by_submit(client.sync, db)
    async with opened(dsn) as own:
        await client.submit_many(BATCH, conn=own.conn)
        await own.commit()
    assert shown(db) == expected


@over_sync
def test_second_submit_of_a_live_key_in_the_same_transaction_is_the_first_job(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    with opened(dsn) as own:
        first = plain_client.sync.submit("t", {"n": 1}, unique_key="k", conn=own.conn)
        second = plain_client.sync.submit("t", {"n": 2}, unique_key="k", conn=own.conn)
        (third,) = plain_client.sync.submit_many(
            [("t", {"n": 3}, {"unique_key": "k"})], conn=own.conn
        )
        own.commit()
    assert (second.id, second.duplicate) == (first.id, True)
    assert (third.id, third.duplicate, third.status) == (first.id, True, Status.APPROVED)
    assert count(db) == 1


@over_sync
def test_refused_submit_leaves_the_callers_transaction_usable(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    with opened(dsn) as own:
        with pytest.raises(InvalidInput, match="NUL"):
            plain_client.sync.submit("t", {"x": "\x00"}, conn=own.conn)
        with pytest.raises(InvalidInput, match=r"jobs\[1\]\.payload\.x: .*NUL"):
            plain_client.sync.submit_many([("t",), ("t", {"x": "\x00"})], conn=own.conn)
        kept = plain_client.sync.submit("t", conn=own.conn)
        own.commit()
    assert [claim.job_id for claim in db.claimed()] == [kept.id]


@over_async
async def test_cancel_works_inside_the_transaction_too(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    job = await client.submit("t")
    async with opened(dsn) as own:
        assert await client.cancel(job.id, "no", "me", conn=own.conn) is Status.CANCELLED
        await own.rollback()
    assert db.places(db.seq_of(job.id)) == ["ready"]
    async with opened(dsn) as own:
        await client.cancel(job.id, "no", "me", conn=own.conn)
        await own.commit()
    assert db.places(db.seq_of(job.id)) == ["outcome"]


async def test_sync_connection_may_be_awaited_with(
    client: Client, dsn: str, db: StoreClient
) -> None:
    with psycopg.connect(dsn) as conn:
        job = await client.submit("t", conn=conn)
        conn.commit()
    assert [claim.job_id for claim in db.claimed()] == [job.id]


async def test_async_connection_needs_the_async_client(client: Client, dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        with pytest.raises(TypeError, match="async"):
            client.sync.submit("t", conn=conn)


@pytest.mark.parametrize("conn", [object(), "dsn", 5, [], psycopg, Client])
async def test_invalid_connection_is_type_error_that_lists_valid_ones(
    client: Client, conn: object
) -> None:
    for call in (
        client.submit("t", conn=conn),
        client.submit_many([("t",)], conn=conn),
        client.cancel("0" * 32, conn=conn),
    ):
        with pytest.raises(TypeError, match=r"psycopg .*asyncpg .*SQLAlchemy .*Django"):
            await call
    with pytest.raises(TypeError, match="SQLAlchemy"):
        client.sync.submit("t", conn=conn)


def test_connection_to_another_database_is_refused(plain_client: Client) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as conn, pytest.raises(TypeError, match="PostgreSQL, not sqlite"):
        plain_client.sync.submit("t", conn=conn)
    engine.dispose()


def test_callers_own_errors_pass_as_they_are(plain_client: Client, dsn: str) -> None:
    """The owner of the transaction can retry it."""
    with psycopg.connect(dsn) as conn:
        with pytest.raises(psycopg.errors.DivisionByZero):
            conn.execute("select 1/0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            plain_client.sync.submit("t", conn=conn)
        conn.rollback()


@over_sync
def test_database_without_schema_raises_clear_error(
    plain_client: Client, empty_dsn: str, opened: OpenSync
) -> None:
    with opened(empty_dsn) as own, pytest.raises(SchemaMismatch, match="laneway db migrate"):
        plain_client.sync.submit("t", conn=own.conn)


@over_sync
def test_missing_right_names_the_grants(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    """Whichever library reports it: a handler's own connection needs other grants than a submit."""
    role = f"ungranted_{uuid4().hex}"
    db.conn.execute(f"create role {role} login password 'secret'")
    parts = urlsplit(dsn)
    ungranted = parts._replace(netloc=f"{role}:secret@{parts.netloc.rpartition('@')[2]}").geturl()
    try:
        for statement, wanted in (
            (cancel(uuid4(), None, None), "client"),
            (guard(Claim(1, uuid4(), 1)), "handler"),
        ):
            with (
                opened(ungranted) as own,
                pytest.raises(MissingRight, match=f"--role {wanted} --to"),
            ):
                run_now(borrow(own.conn).run(statement))
    finally:
        db.conn.execute(f"drop role {role}")


def test_with_conn_nothing_else_is_opened(plain_client: Client, dsn: str, db: StoreClient) -> None:
    with psycopg.connect(dsn) as conn:
        before = threading.active_count()
        plain_client.sync.submit("t", conn=conn)
        assert threading.active_count() == before
        with pytest.raises(NotFound):
            plain_client.sync.cancel("0" * 32, conn=conn)
        conn.commit()
    assert (
        db.one(
            "select count(*) from pg_stat_activity where application_name ~ '^laneway'"
            " and datname = current_database()"
        )
        == 0
    )


def test_batch_is_utf8_with_any_client_encoding(
    plain_client: Client, dsn: str, db: StoreClient
) -> None:
    with psycopg.connect(dsn, client_encoding="LATIN1") as conn:
        (job,) = plain_client.sync.submit_many([("t", {"x": "ü😀"})], conn=conn)
    assert db.row("jobs", db.seq_of(job.id))["payload"] == {"x": "ü😀"}


def test_work_that_would_wait_is_not_run_without_a_loop() -> None:
    import asyncio

    with pytest.raises(RuntimeError, match="event loop"):
        run_now(asyncio.sleep(0))


def test_no_library_is_imported_for_the_sake_of_connections(dsn: str) -> None:
    import subprocess

    code = (
        "import sys, laneway.client, laneway.store.caller_connection;"
        "print([m for m in ('asyncpg', 'sqlalchemy', 'django') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


async def test_submit_works_inside_callers_pipeline(
    client: Client, dsn: str, db: StoreClient
) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        async with conn.pipeline():
            await client.submit("t", conn=conn)
            await client.submit_many([("t", {"n": 1})], conn=conn)
        await conn.commit()
    assert count(db) == 2


def test_cancel_of_unknown_job_finds_nothing(dsn: str, plain_client: Client) -> None:
    import uuid

    with psycopg.connect(dsn) as conn:
        met = run_now(borrow(conn).run(cancel(uuid.uuid4(), None, None)))
    assert met.found_in is None


@pytest.mark.parametrize(
    "given",
    [
        "client_encoding = 'SQL_ASCII'",
        "array_nulls = off; transform_null_equals = on; standard_conforming_strings = off",
        "DateStyle = 'German'; IntervalStyle = iso_8601; TimeZone = 'Asia/Kathmandu'",
        "search_path = ''; row_security = off; plpgsql.extra_errors = 'all'",
    ],
)
def test_settings_of_a_callers_session_do_not_matter(
    plain_client: Client, dsn: str, db: StoreClient, given: str
) -> None:
    with psycopg.connect(dsn) as own:
        for setting in given.split("; "):
            own.execute(f"set {setting}".encode())
        job = plain_client.sync.submit(
            "t", {"n": 1, "ascii": "only"}, tags=["NULL"], delay=60, conn=own
        )
        assert (job.status, job.duplicate) == (Status.APPROVED, False)
        own.commit()
    row = db.row("jobs", db.seq_of(job.id))
    assert (row["payload"], row["tags"]) == ({"n": 1, "ascii": "only"}, ["NULL"])
    assert db.places(row["seq"]) == ["delayed"]
