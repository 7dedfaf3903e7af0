"""Jobs that are unique for a period, by a key or by their arguments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from laneway.client import Client, JobHandle, NewJobSpec
from laneway.config.settings import Settings
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.states import Status
from laneway.engine.registry import Registry, make_handler
from laneway.errors import ConfigError, InvalidInput, LanewayError
from laneway.store.database import Database
from laneway.store.workers import publish
from tests.support.store_client import StoreClient
from tests.support.worker_harness import wait_until


def end(db: StoreClient, verdict: str = "finish") -> None:
    """End all waiting jobs."""
    claims = db.claimed()
    assert claims
    for claim in claims:
        db.settle(claim, verdict)


def end_period(db: StoreClient) -> None:
    assert db.do("update laneway.unique_periods set until = clock_timestamp()") > 0


async def one(client: Client, payload: object, **options: Any) -> JobHandle:
    return await client.submit("t", payload, **options)


async def many(client: Client, payload: object, **options: Any) -> JobHandle:
    """As one of a batch, behind a job that is not unique."""
    _, made = await client.submit_many([NewJobSpec("other"), NewJobSpec("t", payload, **options)])
    return made


WAYS = [one, many]


@pytest.mark.parametrize("submit", WAYS)
async def test_job_is_unique_for_a_period_even_after_its_end(
    client: Client, db: StoreClient, submit: Any
) -> None:
    first = await submit(client, {"n": 1}, unique_for=timedelta(hours=1))
    waiting = await submit(client, {"n": 1}, unique_for=3600)
    assert (waiting.id, waiting.duplicate, waiting.status) == (first.id, True, Status.APPROVED)
    end(db)
    ended = await submit(client, {"n": 1}, unique_for=3600)
    assert (ended.id, ended.duplicate, ended.status) == (first.id, True, Status.COMPLETED)
    assert db.rows("select 1 from laneway.job_keys") == []
    other = await submit(client, {"n": 2}, unique_for=3600)
    assert not other.duplicate
    end_period(db)
    second = await submit(client, {"n": 1}, unique_for=3600)
    assert not second.duplicate
    assert second.id != first.id


@pytest.mark.parametrize("submit", WAYS)
async def test_live_job_stays_unique_after_its_period(
    client: Client, db: StoreClient, submit: Any
) -> None:
    first = await submit(client, {"n": 1}, unique_for=3600)
    end_period(db)
    again = await submit(client, {"n": 1}, unique_for=3600)
    assert (again.id, again.duplicate) == (first.id, True)
    end(db)
    assert not (await submit(client, {"n": 1}, unique_for=3600)).duplicate


@pytest.mark.parametrize("verdict", ["giveup", "cancel"])
async def test_failed_or_cancelled_job_is_unique_too(
    client: Client, db: StoreClient, verdict: str
) -> None:
    first = await client.submit("t", unique_for=60)
    end(db, verdict)
    assert (await client.submit("t", unique_for=60)).id == first.id


@pytest.mark.parametrize("submit", WAYS)
async def test_named_arguments_form_the_key(client: Client, db: StoreClient, submit: Any) -> None:
    first = await submit(client, {"path": "a", "n": 1}, unique_for=60, unique_by=["path"])
    same = await submit(client, {"n": 2, "path": "a"}, unique_for=60, unique_by=["path"])
    assert (same.id, same.duplicate) == (first.id, True)
    other = await submit(client, {"path": "b", "n": 1}, unique_for=60, unique_by=["path"])
    assert not other.duplicate
    # All arguments are another key than one of them.
    assert not (await submit(client, {"path": "a", "n": 1}, unique_for=60)).duplicate


@pytest.mark.parametrize("submit", WAYS)
async def test_arguments_alone_are_unique_among_live_jobs(
    client: Client, db: StoreClient, submit: Any
) -> None:
    first = await submit(client, {"path": "a", "n": 1}, unique_by=["path"])
    assert (await submit(client, {"path": "a", "n": 2}, unique_by=["path"])).id == first.id
    end(db)
    assert not (await submit(client, {"path": "a", "n": 2}, unique_by=["path"])).duplicate


@pytest.mark.parametrize("submit", WAYS)
async def test_given_key_is_unique_for_the_period(
    client: Client, db: StoreClient, submit: Any
) -> None:
    first = await submit(client, {"n": 1}, unique_key="k", unique_for=60)
    end(db)
    assert (await submit(client, {"n": 2}, unique_key="k", unique_for=60)).id == first.id
    # A submit that asks for no period looks only for live jobs.
    assert not (await submit(client, {"n": 2}, unique_key="k")).duplicate


async def test_batch_holds_each_key_once(client: Client, db: StoreClient) -> None:
    old = await client.submit("t", {"n": 0}, unique_for=60)
    end(db)
    made = await client.submit_many(
        [
            *(NewJobSpec("t", {"n": n}, unique_for=60) for n in (0, 1, 0, 1, 2)),
            NewJobSpec("t", {"n": 2}),
        ]
    )
    assert [job.duplicate for job in made] == [True, False, True, True, False, False]
    assert [made[0].id, made[2].id, made[3].id] == [old.id, old.id, made[1].id]
    assert made[0].status is Status.COMPLETED
    assert db.one("select count(*) from laneway.jobs") == 4
    assert db.one("select count(*) from laneway.job_keys") == 2
    assert db.one("select count(*) from laneway.unique_periods") == 3


@pytest.mark.parametrize("submit", WAYS)
async def test_concurrent_submits_store_one_job(
    client: Client, dsn: str, db: StoreClient, submit: Any
) -> None:
    """The second waits for the first transaction, also when the period of a third job is over."""
    first = await client.submit("t", {"n": 1}, unique_for=60)
    end(db)
    end_period(db)
    async with await psycopg.AsyncConnection.connect(dsn) as own:
        mine = await client.submit("t", {"n": 1}, unique_for=60, conn=own)
        assert not mine.duplicate
        others = [asyncio.create_task(submit(client, {"n": 1}, unique_for=60)) for _ in range(3)]
        await wait_until(
            lambda: (
                db.one(
                    "select count(*) from pg_stat_activity"
                    " where wait_event_type = 'Lock' and datname = current_database()"
                )
                == len(others)
            )
        )
        await own.commit()
    made = await asyncio.gather(*others)
    assert {job.id for job in made} == {mine.id}
    assert all(job.duplicate for job in made)
    assert mine.id != first.id


async def test_duplicates_of_ended_jobs_wait_for_no_other_submit(
    client: Client, dsn: str, db: StoreClient
) -> None:
    """An open transaction of duplicates holds no key: others in any order pass it."""
    first = [await client.submit("t", {"n": n}, unique_for=60) for n in (1, 2)]
    end(db)
    async with await psycopg.AsyncConnection.connect(dsn) as own:
        specs = [NewJobSpec("t", {"n": n}, unique_for=60) for n in (1, 2)]
        made = await client.submit_many(specs, conn=own)
        assert [job.id for job in made] == [job.id for job in first]
        again = await client.submit("t", {"n": 1}, unique_for=60, conn=own)
        assert (again.id, again.duplicate) == (first[0].id, True)
        db.do("set lock_timeout = '5s'")
        for n in (2, 1):
            same = "select job_id from laneway.submit('t', %s::jsonb, unique_for => '1 min')"
            assert db.one(same, f'{{"n": {n}}}') == first[n - 1].id
        await own.rollback()


@pytest.mark.parametrize("submit", WAYS)
async def test_period_of_a_job_that_does_not_exist_is_refused(
    client: Client, db: StoreClient, submit: Any
) -> None:
    made = await client.submit("t", {"n": 1}, unique_for=60)
    end(db)
    db.do("delete from laneway.jobs where id = %s", made.id)
    with pytest.raises((LanewayError, psycopg.Error), match="belongs to a job that does not exist"):
        await submit(client, {"n": 1}, unique_for=60)


@pytest.mark.parametrize(
    "payload, same, other",
    [
        ('{"a": 1}', '{"a": 1.00}', '{"a": 1.01}'),
        ('{"a": [{"b": -1.5}, 100]}', '{"a": [{"b": -1.500}, 1e2]}', '{"a": [{"b": -1.05}, 100]}'),
        ('{"a": 0, "b": 10}', '{"b": 10.0, "a": -0.0}', '{"a": 0, "b": 1}'),
        ('{"a": 20.05}', '{"a": 20.0500}', '{"a": 2.05}'),
        (r'{"a": "\\\" 1.0", "b": 2}', r'{"b": 2.0, "a": "\\\" 1.0"}', r'{"a": "\\\" 1", "b": 2}'),
    ],
)
def test_equal_numbers_form_one_key(db: StoreClient, payload: str, same: str, other: str) -> None:
    key = "select laneway.unique_key_of(%s::jsonb, null, null)"
    assert db.one(key, payload) == db.one(key, same)
    assert db.one(key, payload) != db.one(key, other)


async def test_rolled_back_submit_leaves_no_period(
    client: Client, dsn: str, db: StoreClient
) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as own:
        await client.submit("t", unique_for=60, conn=own)
        await own.rollback()
    assert not (await client.submit("t", unique_for=60)).duplicate


@pytest.fixture
async def handler_client(dsn: str, settings: Settings) -> AsyncIterator[Client]:
    """A client with a handler that no worker has published."""
    registry = Registry()

    async def run(ctx: object, path: str, n: int = 1) -> None: ...

    registry.add(make_handler("t", run, unique_for=60, unique_by=["path"]))
    database = Database(dsn, settings)
    client = Client(database, settings, registry)
    yield client
    await client.close()
    await database.close()


@pytest.mark.parametrize("submit", WAYS)
async def test_handler_declares_uniqueness_of_its_jobs(
    handler_client: Client, db: StoreClient, submit: Any
) -> None:
    first = await submit(handler_client, {"path": "a"})
    end(db)
    assert (await submit(handler_client, {"path": "a", "n": 2})).id == first.id
    assert not (await submit(handler_client, {"path": "a"}, unique_for=0)).duplicate


def published(db: StoreClient) -> None:
    async def run(ctx: object, path: str, n: int = 1) -> None: ...

    record: TypeRecord = make_handler("t", run, unique_for=60).record()
    db.run(publish([record]))


@pytest.mark.parametrize("submit", WAYS)
async def test_published_type_declares_uniqueness_to_clients_without_its_code(
    client: Client, db: StoreClient, submit: Any
) -> None:
    published(db)
    first = await submit(client, {"path": "a"})
    # A published default counts like the same value in the payload.
    second = await submit(client, {"path": "a", "n": 1})
    assert (second.id, second.duplicate) == (first.id, True)
    assert not (await submit(client, {"path": "a", "n": 2})).duplicate


def test_published_type_declares_uniqueness_to_sql(db: StoreClient) -> None:
    published(db)
    submit = "select job_id, duplicate from laneway.submit('t', %s::jsonb)"
    first, _ = db.one(submit, '{"path": "a"}')
    assert db.one(submit, '{"n": 1, "path": "a"}') == (first, True)
    free = "select duplicate from laneway.submit('t', '{\"path\": \"a\"}', unique_for => '0')"
    assert db.one(free) is False


async def test_unknown_argument_in_unique_by_is_refused(
    client: Client, handler_client: Client, db: StoreClient
) -> None:
    published(db)
    for asked in (client, handler_client):
        with pytest.raises(InvalidInput, match=r"unique_by: '?pth'? is not an argument"):
            await asked.submit("t", {"path": "a"}, unique_by=["pth"])

    async def run(ctx: object, path: str) -> None: ...

    with pytest.raises(ConfigError, match=r"'u': unique_by: 'pth' is not an argument; .* path"):
        make_handler("u", run, unique_by=["pth"])


async def test_deleting_takes_periods_in_the_order_of_a_batch(
    client: Client, dsn: str, db: StoreClient
) -> None:
    """It holds no later key while it waits for an earlier one: a batch that has that goes on."""
    made = [await client.submit("t", unique_key=key, unique_for=60) for key in ("b", "a")]
    end(db)
    seqs = [db.seq_of(job.id) for job in made]
    lock = "select 1 from laneway.unique_periods where unique_key = %s for update nowait"
    async with (
        await psycopg.AsyncConnection.connect(dsn) as batch,
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as deleting,
    ):
        await batch.execute(lock, ["a"])
        removing = asyncio.create_task(
            deleting.execute("select laneway.remove_jobs(%s::bigint[])", [seqs])
        )
        waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
        await wait_until(lambda: db.one(waits, deleting.info.backend_pid))
        await batch.execute(lock, ["b"])
        await batch.rollback()
        await removing
    assert db.rows("select 1 from laneway.unique_periods") == []


async def test_deleted_job_ends_its_period(client: Client, db: StoreClient) -> None:
    first = await client.submit("t", unique_for=60)
    end(db)
    assert (
        db.one("select count(*) from laneway.remove_jobs(array[%s]::bigint[])", db.seq_of(first.id))
        == 1
    )
    assert db.rows("select 1 from laneway.unique_periods") == []
    assert not (await client.submit("t", unique_for=60)).duplicate
