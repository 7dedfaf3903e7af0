"""Verbs on many jobs come back to those that another transaction has locked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from types import ModuleType
from uuid import uuid4

import pytest

from laneway.config.settings import Settings
from laneway.control import bulk
from laneway.control import flows as control
from laneway.control.bulk import PrincipalLimits
from laneway.domain.bounds import USUAL, Bounds
from laneway.domain.bulk import BulkProgress, BulkRequest, BulkVerb
from laneway.domain.filter import JobFilter
from laneway.domain.flow import ChangedFlow
from laneway.domain.job import Job
from laneway.errors import Refused
from laneway.store import flow_changes, jobs, locked_jobs, quotas
from laneway.store.database import Database, run_on
from laneway.store.quotas import Quota
from tests.store.edges import Edges
from tests.support.store_client import StoreClient
from tests.support.worker_harness import wait_until

SHARE = "select from laneway.ready where seq = any (%s) for key share"
ENDED = "select from laneway.outcome where seq = any (%s) for key share"


@pytest.fixture
def store(dsn: str) -> Iterator[StoreClient]:
    with StoreClient(dsn) as client:
        yield client


@pytest.fixture
def holder(dsn: str) -> Iterator[StoreClient]:
    """A transaction that has jobs locked."""
    with StoreClient(dsn) as client:
        client.begin()
        yield client


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    # A statement that waits for a lock fails.
    settings = Settings.load(database_url=dsn, statement_timeout=5)
    database = Database(dsn, settings, role="tests control")
    yield database
    await database.close()


@pytest.fixture
def edges(store: StoreClient) -> Edges:
    return Edges(store)


def statuses(store: StoreClient, seqs: list[int]) -> set[str]:
    return {Edges(store).status(seq) for seq in seqs}


async def saw(store: StoreClient, seq: int, status: str) -> None:
    await wait_until(lambda: Edges(store).status(seq) == status)


def pause_with(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, *done: Callable[[], object]
) -> None:
    """Let the pauses of a verb do these one by one; after the last it gives up."""
    left = iter(done)

    class Pauses(locked_jobs.Patience):
        async def pause(self) -> bool:
            following = next(left, None)
            if following is not None:
                following()
            return following is not None

    monkeypatch.setattr(module, "Patience", Pauses)


async def test_cancelled_flow_ends_jobs_that_were_locked(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 12, flow=flow)
    holder.rows(SHARE, seqs[2:10])
    cancelling = asyncio.create_task(control.cancel(db, flow, by="me"))
    # It does not wait for those that are locked.
    await saw(store, seqs[0], "cancelled")
    assert edges.status(seqs[2]) == "approved"
    holder.commit()
    done = await cancelling
    assert (done.changed, done.flow.counts.cancelled) == (12, 12)
    assert statuses(store, seqs) == {"cancelled"}


async def test_job_claimed_during_the_cancel_of_its_flow_is_asked_to_stop(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 3, flow=flow)
    (claim,) = holder.claimed(1)
    cancelling = asyncio.create_task(control.cancel(db, flow, by="me"))
    await saw(store, seqs[-1], "cancelled")
    holder.commit()
    assert (await cancelling).changed == 3
    assert store.row("lease", claim.seq)["cancel_requested_at"] is not None


async def test_cancel_of_a_flow_starts_no_locked_job_by_the_end_of_its_parent(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None, {"after": [0], "after_failure": "run"}, None], flow=flow)
    holder.rows("select from laneway.waiting where seq = %s for update", seqs[1])
    cancelling = asyncio.create_task(control.cancel(db, flow, by="me"))
    await saw(store, seqs[2], "cancelled")
    assert edges.status(seqs[0]) == "approved"
    holder.rollback()
    assert (await cancelling).changed == 3
    assert statuses(store, seqs) == {"cancelled"}
    assert edges.are_consistent()


async def test_cancel_of_a_flow_names_jobs_that_stay_locked(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(locked_jobs, "PATIENCE_S", 0.3)
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 3, flow=flow)
    holder.rows(SHARE, seqs[:2])
    with pytest.raises(Refused, match=r"1 job was cancelled.*; 2 are locked") as refused:
        await control.cancel(db, flow, by="me")
    assert "again" in str(refused.value)
    assert [edges.status(seq) for seq in seqs] == ["approved", "approved", "cancelled"]
    holder.rollback()
    assert (await control.cancel(db, flow, by="me")).changed == 2


async def test_cancel_of_a_flow_comes_back_to_all_although_newer_jobs_stay_locked(
    db: Database, dsn: str, holder: StoreClient, edges: Edges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_changes, "BATCH", 2)
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 5, flow=flow)
    holder.rows(SHARE, seqs[2:4])
    with StoreClient(dsn) as another:
        another.begin()
        another.rows(SHARE, seqs[:2])
        pause_with(monkeypatch, flow_changes, another.rollback)
        with pytest.raises(Refused, match=r"3 jobs were cancelled.*; 2 are locked"):
            await control.cancel(db, flow, by="me")
    assert [edges.status(seq) for seq in seqs] == ["cancelled"] * 2 + ["approved"] * 2 + [
        "cancelled"
    ]
    holder.rollback()


async def test_retried_flow_queues_jobs_that_were_locked_before_those_after_them(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch(
        [None, None, {"after": [1], "after_failure": "run"}, {"after": [2]}], flow=flow
    )
    await flow_changes.cancel(db, flow, "me", None)
    edges.advance()
    holder.rows(ENDED, [seqs[1]])
    retrying = asyncio.create_task(control.retry(db, flow, by="me"))
    await saw(store, seqs[0], "approved")
    assert edges.status(seqs[2]) == "cancelled"
    holder.commit()
    assert (await retrying).changed == 4
    assert [edges.status(seq) for seq in seqs] == ["approved", "approved", "waiting", "waiting"]


async def test_retry_of_a_flow_names_how_far_it_came(
    db: Database, holder: StoreClient, edges: Edges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked_jobs, "PATIENCE_S", 0.3)
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 3, flow=flow)
    await flow_changes.cancel(db, flow, "me", None)
    holder.rows(ENDED, [seqs[1]])
    with pytest.raises(Refused, match=r"1 job was queued again; .*locked"):
        await control.retry(db, flow, by="me")
    holder.rollback()
    assert (await control.retry(db, flow, by="me")).changed == 2


async def test_reprioritized_flow_changes_jobs_that_were_locked(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 4, flow=flow)
    holder.rows("select from laneway.ready where seq = any (%s) for update", seqs[:2])
    changing = asyncio.create_task(control.reprioritize(db, flow, 7, by="me"))
    # It does not wait for those that are locked.
    await wait_until(lambda: store.row("ready", seqs[3])["rank"] == -7)
    holder.rollback()
    assert (await changing).changed == 4
    assert {store.row("ready", seq)["rank"] for seq in seqs} == {-7}


@pytest.mark.parametrize("bounds", [None, USUAL], ids=["unbounded", "bounded"])
async def test_retry_of_a_flow_in_one_transaction_comes_back_to_locked_jobs(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges, bounds: Bounds | None
) -> None:
    """So is a request with an Idempotency-Key."""
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 3, flow=flow)
    await flow_changes.cancel(db, flow, "me", None)
    holder.rows(ENDED, [seqs[1]])
    limits = None if bounds is None else PrincipalLimits(uuid4(), lambda job: bounds)

    async def retry() -> ChangedFlow:
        async with db.joined() as one:
            return await control.retry(one, flow, by="me", limits=limits)

    retrying = asyncio.create_task(retry())
    # Jobs that another transaction retries are locked.
    await wait_until(lambda: is_locked(store, seqs[0]) or retrying.done())
    holder.commit()
    assert (await retrying).changed == 3


async def test_reprioritized_flow_in_one_transaction_comes_back_to_locked_jobs(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 4, flow=flow)
    holder.rows("select from laneway.ready where seq = any (%s) for update", seqs[:2])

    async def change() -> ChangedFlow:
        async with db.joined() as one:
            return await control.reprioritize(one, flow, 7, by="me")

    changing = asyncio.create_task(change())
    await wait_until(lambda: is_locked(store, seqs[3]) or changing.done())
    holder.rollback()
    assert (await changing).changed == 4


async def test_full_quota_does_not_end_the_transaction_of_a_retry(
    db: Database, store: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    edges.submit_batch([None] * 3, flow=flow)
    await flow_changes.cancel(db, flow, "me", None)
    limits = PrincipalLimits(uuid4(), lambda job: replace(USUAL, max_queued=2))
    async with db.joined() as one:
        with pytest.raises(Refused, match="2 jobs were queued again"):
            await control.retry(one, flow, by="me", limits=limits)
        await control.get(one, flow)


async def test_bounded_retry_of_a_flow_does_not_wait_for_jobs_that_it_leaves_alone(
    db: Database, store: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    first = edges.submit(flow=flow, unique_key="k")
    child = edges.submit(flow=flow, after=[first])
    edges.submit(flow=flow, after=[child])
    edges.end(first, kind="giveup")
    edges.submit(unique_key="k")
    done = await control.retry(
        db, flow, by="me", limits=PrincipalLimits(uuid4(), lambda job: USUAL)
    )
    assert (done.changed, done.flow.status.value) == (0, "failed")


async def test_bounded_retry_leaves_job_whose_parent_failed_after_it_was_read(
    db: Database, store: StoreClient, edges: Edges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "MOST_JOBS", 2)
    flow = edges.flow()
    parent, failed = edges.submit_batch([None] * 2, flow=flow)
    child = edges.submit(flow=flow, after=[parent])
    edges.end(failed, kind="giveup")
    edges.claim(parent)

    def bounds(job: Job) -> Bounds:
        # The page with the parent has been read, the page with its child has not.
        if edges.status(parent) == "running":
            edges.end(parent, kind="giveup")
            assert edges.status(child) == "cancelled"
        return USUAL

    done = await control.retry(db, flow, by="me", limits=PrincipalLimits(uuid4(), bounds))
    found = [edges.status(seq) for seq in (parent, failed, child)]
    assert (done.changed, found) == (1, ["failed", "approved", "cancelled"])
    edges.end(failed)
    assert (await control.get(db, flow)).status == "failed"


async def test_bounded_retry_leaves_job_whose_parent_failed_while_it_was_locked(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    flow = edges.flow()
    parent = edges.submit(flow=flow)
    child = edges.submit(flow=flow, after=[parent])
    edges.claim(parent)
    await db.run(jobs.cancel(store.id_of(child), "me", None))
    holder.rows(ENDED, [child])

    def fail_parent() -> None:
        edges.end(parent, kind="giveup")
        holder.rollback()

    pause_with(monkeypatch, control, fail_parent)
    limits = PrincipalLimits(uuid4(), lambda job: USUAL)
    done = await control.retry(db, flow, by="me", limits=limits)
    found = [edges.status(seq) for seq in (parent, child)]
    assert (done.changed, found) == (0, ["failed", "cancelled"])


async def test_bounded_retry_cancels_job_whose_parent_failed_meanwhile(
    db: Database, store: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    parent = edges.submit(flow=flow)
    child = edges.submit(flow=flow, after=[parent])
    edges.claim(parent)
    await db.run(jobs.cancel(store.id_of(child), "me", None))

    def bounds(job: Job) -> Bounds:
        # After the check of the parent, before the retry.
        edges.end(parent, kind="giveup")
        return USUAL

    done = await control.retry(db, flow, by="me", limits=PrincipalLimits(uuid4(), bounds))
    found = [edges.status(seq) for seq in (parent, child)]
    assert (done.changed, found, done.flow.status.value) == (
        0, ["failed", "cancelled"], "failed",
    )  # fmt: skip


def is_locked(store: StoreClient, seq: int) -> bool:
    """Whether another transaction has changed the job's place, or its priority."""
    free = "select seq from laneway.{} where seq = %s for update skip locked"
    return not any(store.rows(free.format(table), seq) for table in ("ready", "outcome"))


async def bulk_run(db: Database, verb: BulkVerb, priority: int | None = None) -> BulkProgress:
    request = BulkRequest(verb=verb, wanted=JobFilter(job_type="t"), priority=priority)
    progress = [each async for each in bulk.run(db, request, by="me")]
    return progress[-1]


async def test_bulk_cancel_comes_back_to_locked_jobs(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges
) -> None:
    seqs = [edges.submit() for _ in range(4)]
    holder.rows(SHARE, [seqs[2]])
    running = asyncio.create_task(bulk_run(db, BulkVerb.CANCEL))
    await saw(store, seqs[3], "cancelled")
    holder.rollback()
    done = await running
    assert (done.done, done.refused) == (4, {})
    assert statuses(store, seqs) == {"cancelled"}


@pytest.mark.parametrize("verb", [BulkVerb.CANCEL, BulkVerb.RETRY, BulkVerb.REPRIORITIZE])
async def test_bulk_verb_counts_jobs_that_stay_locked_and_goes_on(
    db: Database, store: StoreClient, holder: StoreClient, edges: Edges, verb: BulkVerb,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(locked_jobs, "PATIENCE_S", 0.3)
    seqs = [edges.submit() for _ in range(3)]
    if verb is BulkVerb.RETRY:
        edges.end(*seqs, kind="giveup")
    table = "outcome" if verb is BulkVerb.RETRY else "ready"
    holder.rows(f"select from laneway.{table} where seq = %s for update", seqs[1])
    done = await bulk_run(db, verb, 3 if verb is BulkVerb.REPRIORITIZE else None)
    assert done.done == 2
    assert dict(done.refused) == {locked_jobs.LOCKED: 1}


async def test_change_of_one_job_keeps_the_lock_timeout_of_its_transaction(
    db: Database, store: StoreClient, edges: Edges
) -> None:
    ((job_id,),) = store.rows(
        "select id from laneway.jobs where seq = any (%s)", edges.submit_batch([None])
    )
    async with db.connection() as conn, conn.transaction():
        await conn.execute("set local lock_timeout = '7s'")
        for change in (jobs.reprioritize(job_id, 3, lock_ms=50), jobs.retry(job_id, lock_ms=50)):
            assert (await run_on(conn, change)).found_in == "approved"
            assert await (await conn.execute("show lock_timeout")).fetchone() == ("7s",)


async def test_retry_waits_for_a_submit_that_counts_for_the_same_principal(
    db: Database, store: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 2, flow=flow)
    (first,), (second,) = store.rows(
        "select id from laneway.jobs where seq = any (%s) order by seq", seqs
    )
    await flow_changes.cancel(db, flow, "me", None)
    bounds = replace(USUAL, max_queued=5)
    limits = PrincipalLimits(uuid4(), lambda job: bounds)
    async with db.transaction() as submit:
        await submit.run(quotas.charge(Quota(limits.principal_id, bounds), [first]))
        retrying = asyncio.create_task(bulk.retry_within(db, second, limits))
        await asyncio.wait({retrying}, timeout=0.5)
        assert not retrying.done(), "the job is not locked"
    found = await retrying
    assert not isinstance(found, str)
    assert found.found_in == "cancelled"
