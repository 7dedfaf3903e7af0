"""Job types that need an analysis or an approval: every way to submit, and decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from laneway import Analysis, Approval
from laneway.client import Client, NewJobSpec
from laneway.config.settings import Settings
from laneway.domain.approval import analysis_of
from laneway.domain.states import Status
from laneway.engine.registry import Registry, make_handler
from laneway.errors import InvalidInput, JobFailed, NotFound, Refused
from laneway.store.database import Database
from tests.client.test_conn import OpenAsync, OpenSync, over_async, over_sync
from tests.store.approvals import analyzed, analyzing, publish, status
from tests.support.notifications import NotificationListener
from tests.support.store_client import StoreClient

GATED = {"analysed": Status.PENDING, "gated": Status.AWAITING_APPROVAL}


def handlers() -> Registry:
    registry = Registry()

    async def run(ctx: object) -> None: ...

    for name, approval in (("analysed", True), ("gated", True), ("plain", False)):
        registry.add(make_handler(name, run, approval=approval))
    registry.add(make_handler("two", run, approval=Approval(two_person=True)))
    registry.add(make_handler("mortal", run, max_age=60))
    registry.add_analysis(registry["analysed"], lambda: Analysis())
    return registry


def publish_all(db: StoreClient) -> None:
    publish(db, "analysed", Approval(), analysis=True)
    publish(db, "gated", Approval())
    publish(db, "two", Approval(two_person=True))
    publish(db, "plain")


@pytest.fixture
async def full_client(dsn: str, settings: Settings) -> AsyncIterator[Client]:
    """A client with handlers that no worker has published."""
    database = Database(dsn, settings)
    client = Client(database, settings, handlers())
    yield client
    await client.close()
    await database.close()


@pytest.fixture
def plain_full_client(dsn: str, settings: Settings) -> Iterator[Client]:
    client = Client(Database(dsn, settings), settings, handlers())
    yield client
    client.sync.close()


async def test_unpublished_approval_policy_of_submitter_is_respected(
    full_client: Client, db: StoreClient
) -> None:
    names = [*GATED, "plain"]
    one_by_one = [await full_client.submit(name) for name in names]
    together = await full_client.submit_many([(name, {}) for name in names])
    keyed = await full_client.submit_many([NewJobSpec(n, unique_key="k") for n in names])
    for made in (one_by_one, together, keyed):
        assert [job.status for job in made] == [*GATED.values(), Status.APPROVED]
        for job in made:
            assert status(db, db.seq_of(job.id)) == job.status
    claimed = [claim.job_id for claim in db.claimed(types=names)]
    assert claimed == [made[2].id for made in (one_by_one, together, keyed)]


async def test_older_worker_does_not_take_the_approval_away(
    full_client: Client, db: StoreClient
) -> None:
    """The older worker knows the analysis of the type and publishes no approval."""
    publish(db, "analysed", analysis=True)
    publish(db, "gated")
    made = [
        await full_client.submit("analysed"),
        *await full_client.submit_many([("analysed", {})]),
    ]
    for job in made:
        assert analyzed(db, analyzing(db, "analysed")).status == "awaiting_approval"
        assert status(db, db.seq_of(job.id)) == "awaiting_approval"
    assert (await full_client.submit("gated")).status is Status.AWAITING_APPROVAL


@pytest.mark.parametrize("published, expected", [(None, 60), ({}, 60), ({"max_age_s": 90.0}, 90)])
async def test_jobs_of_local_handler_have_its_max_age(
    full_client: Client, db: StoreClient, published: dict[str, Any] | None, expected: float
) -> None:
    """The local max_age applies before any worker publishes; a published one applies to all."""
    if published is not None:
        publish(db, "mortal", **published)
    made = [
        await full_client.submit("mortal"),
        *await full_client.submit_many([("mortal", {})]),
    ]
    made += await full_client.submit_many([NewJobSpec("mortal", unique_key="k")])
    for job in made:
        lives = db.one(
            "select extract(epoch from d.at - j.created_at)::float from laneway.jobs j"
            " join laneway.deadlines d on d.seq = j.seq where j.id = %s",
            job.id,
        )
        assert lives == expected


@over_async
async def test_jobs_in_callers_transaction_have_max_age(
    full_client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    async with opened(dsn) as own:
        made = [await full_client.submit("mortal", conn=own.conn)]
        made += await full_client.submit_many([("mortal", {})], conn=own.conn)
        await own.commit()
    seqs = [db.seq_of(job.id) for job in made]
    assert db.one("select count(*) from laneway.deadlines where seq = any (%s)", seqs) == 2


async def test_published_policy_applies_to_clients_without_handler(
    client: Client, db: StoreClient
) -> None:
    publish_all(db)
    for name, expected in GATED.items():
        assert (await client.submit(name)).status is expected
        (job,) = await client.submit_many([(name, {})])
        assert job.status is expected
        assert db.one(f"select status from laneway.submit('{name}')") == expected


@over_sync
@pytest.mark.parametrize("is_published", [True, False])
def test_approval_applies_inside_callers_transaction(
    plain_client: Client, plain_full_client: Client, dsn: str, db: StoreClient, opened: OpenSync,
    is_published: bool,
) -> None:  # fmt: skip
    if is_published:
        publish_all(db)
    submits = (plain_client if is_published else plain_full_client).sync
    with opened(dsn) as own:
        made = [submits.submit(name, conn=own.conn) for name in GATED]
        made += submits.submit_many([(name, {}) for name in GATED], conn=own.conn)
        own.commit()
    assert [job.status for job in made] == [*GATED.values()] * 2
    assert [status(db, db.seq_of(job.id)) for job in made] == [*GATED.values()] * 2


@over_async
async def test_approval_applies_inside_async_transaction(
    full_client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    async with opened(dsn) as own:
        made = [await full_client.submit(name, conn=own.conn) for name in GATED]
        made += await full_client.submit_many([(name, {}) for name in GATED], conn=own.conn)
        made += await full_client.submit_many(
            [(name, {}, {"unique_key": "k"}) for name in GATED], conn=own.conn
        )
        await own.commit()
    assert [status(db, db.seq_of(job.id)) for job in made] == [*GATED.values()] * 3


@over_async
@pytest.mark.parametrize("delay", [None, 90])
async def test_batch_places_jobs_as_single_submits_do(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync, delay: float | None
) -> None:
    """Row by row, by COPY and without."""
    publish_all(db)
    options: dict[str, Any] = {"priority": 3, "delay": delay, "concurrency_key": "k"}
    for name, place in (("analysed", "ready"), ("gated", "awaiting")):
        async with opened(dsn) as own:
            one = await client.submit(name, **options, conn=own.conn)
            (other,) = await client.submit_many([NewJobSpec(name, **options)], conn=own.conn)
            await own.commit()
        left, right = (db.row(place, db.seq_of(job.id)) for job in (one, other))
        times = {"seq", "ready_at", "since", "expires_at"}
        assert {k: v for k, v in left.items() if k not in times} == {
            k: v for k, v in right.items() if k not in times
        }
        for seq in (left["seq"], right["seq"]):
            assert len(db.places(seq)) == 1


async def test_repeated_key_of_a_batch_stands_where_its_first_job_does(
    client: Client, db: StoreClient
) -> None:
    publish_all(db)
    batch = [NewJobSpec(name, unique_key="k") for name in (*GATED, *GATED)]
    made = await client.submit_many(batch)
    assert [(job.status, job.duplicate) for job in made] == [
        *((expected, False) for expected in GATED.values()),
        *((expected, True) for expected in GATED.values()),
    ]
    assert [job.id for job in made[:2]] == [job.id for job in made[2:]]


async def test_two_person_approval_requires_named_submitter(
    client: Client, full_client: Client, db: StoreClient
) -> None:
    with pytest.raises(InvalidInput, match=r"^created_by: must be given"):
        await full_client.submit("two")
    publish_all(db)
    with pytest.raises(InvalidInput, match=r"^created_by: must be given"):
        await client.submit("two")
    for who in (client, full_client):
        for key in (None, "k"):
            batch = [
                NewJobSpec("plain"),
                NewJobSpec("two", created_by="me", unique_key=key),
                NewJobSpec("two"),
            ]
            with pytest.raises(InvalidInput) as refused:
                await who.submit_many(batch)
            assert refused.value.field == "jobs[2].created_by"
    assert db.one("select count(*) from laneway.jobs") == 0
    made = await client.submit("two", created_by="me")
    assert made.status is Status.AWAITING_APPROVAL


async def test_workers_are_woken_only_for_runnable_jobs(
    client: Client, dsn: str, db: StoreClient
) -> None:
    publish_all(db)
    async with NotificationListener(dsn) as listener:
        gated = await client.submit("gated")
        await client.submit_many([("gated", {})])
        await client.submit("analysed")
        assert await listener.next() == f"wake {analysis_of('analysed')}"
        await client.approve(gated.id, "ann")
        assert await listener.next() == "wake gated"
        async with await psycopg.AsyncConnection.connect(dsn) as conn:
            await client.submit("gated", conn=conn, wake=True)
            await client.submit("analysed", conn=conn, wake=True)
        assert await listener.received() == [f"wake {analysis_of('analysed')}"]


async def test_approve_and_reject_are_verbs_of_the_client(client: Client, db: StoreClient) -> None:
    publish_all(db)
    one, other = [await client.submit("gated", created_by="me") for _ in range(2)]
    await client.approve(one.id, "ann", "fine")
    await client.reject(str(other.id), "ann", "no")
    job = await one.get()
    assert (job.status, job.approved_by) == (Status.APPROVED, "ann")
    assert (await other.get()).status is Status.CANCELLED
    with pytest.raises(JobFailed, match="was cancelled: Cancel: rejected: no"):
        await other.wait(60)
    with pytest.raises(Refused, match="is approved"):
        await client.approve(one.id, "bob")
    with pytest.raises(Refused, match="is cancelled"):
        await client.reject(other.id, "bob", "again")
    with pytest.raises(NotFound):
        await client.approve("00000000-0000-0000-0000-000000000000", "ann")
    with pytest.raises(InvalidInput, match="by:"):
        await client.approve(one.id, "")
    with pytest.raises(InvalidInput, match="reason:"):
        await client.reject(one.id, "ann", "")
    third = await client.submit("gated")
    with pytest.raises(Refused, match="has changed since it was shown"):
        await client.approve(third.id, "ann", seal="0" * 64)


@over_sync
def test_decision_counts_when_the_callers_transaction_commits(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    publish_all(db)
    lw = plain_client.sync
    one, other = lw.submit("gated"), lw.submit("gated")
    with opened(dsn) as own:
        lw.approve(one.id, "ann", conn=own.conn)
        own.rollback()
        assert one.get().status is Status.AWAITING_APPROVAL
        lw.approve(one.id, "bob", conn=own.conn)
        lw.reject(other.id, "bob", "no", conn=own.conn)
        own.commit()
    assert (one.get().approved_by, other.get().status) == ("bob", Status.CANCELLED)
