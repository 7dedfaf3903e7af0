"""Decisions of applications about jobs are audited, in the caller's transaction if given."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from laneway.client import Client
from laneway.domain.actor import Actor
from laneway.domain.approval import Approval
from laneway.errors import NotFound, Refused
from tests.client.test_conn import OpenAsync, OpenSync, over_async, over_sync
from tests.store.approvals import publish
from tests.support.store_client import StoreClient


def audit_entries(db: StoreClient, job_id: UUID) -> list[tuple[Any, ...]]:
    return db.rows(
        "select actor, door, action, before ->> 'status', after ->> 'status'"
        " from laneway.audit where kind = 'job' and name = %s order by id",
        str(job_id),
    )


async def test_each_decision_of_application_leaves_one_audit_entry(
    client: Client, db: StoreClient
) -> None:
    publish(db, "gated", Approval())
    made = [await client.submit("gated", workspace="north") for _ in range(3)]
    await client.cancel(made[0].id)
    await client.approve(made[1].id, Actor("ann", door="mcp"), "fine")
    await client.reject(made[2].id, "bob", "no")
    assert [audit_entries(db, job.id) for job in made] == [
        [("application", "python", "job.cancelled", "awaiting_approval", "cancelled")],
        [("ann", "mcp", "job.approved", "awaiting_approval", "approved")],
        [("bob", "python", "job.rejected", "awaiting_approval", "cancelled")],
    ]
    entries = db.rows("select workspace, after ->> 'comment' from laneway.audit order by id desc")
    assert entries[:2] == [("north", "no"), ("north", "fine")]


async def test_refused_decision_leaves_no_audit_entry(client: Client, db: StoreClient) -> None:
    publish(db, "two", Approval(two_person=True))
    job = await client.submit("two", created_by="ann")
    with pytest.raises(Refused, match="another person"):
        await client.approve(job.id, "ann")
    await client.reject(job.id, "bob", "no")
    with pytest.raises(Refused):
        await client.cancel(job.id, by="ann")
    with pytest.raises(Refused):
        await client.reject(job.id, "ann", "again")
    with pytest.raises(NotFound):
        await client.cancel(UUID(int=7), by="ann")
    assert [act[0] for act in audit_entries(db, job.id)] == ["bob"]
    assert audit_entries(db, UUID(int=7)) == []


@over_sync
def test_audit_entry_commits_with_callers_transaction(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    publish(db, "gated", Approval())
    sync = plain_client.sync
    plain, yes, no = (sync.submit(name).id for name in ("plain", "gated", "gated"))

    def decide(conn: object) -> None:
        sync.cancel(plain, "why", "ann", conn=conn)
        sync.approve(yes, "ann", conn=conn)
        sync.reject(no, "ann", "no", conn=conn)

    with opened(dsn) as own:
        decide(own.conn)
        own.rollback()
        assert [audit_entries(db, job) for job in (plain, yes, no)] == [[], [], []]
        decide(own.conn)
        assert [audit_entries(db, job) for job in (plain, yes, no)] == [[], [], []]
        own.commit()
    actions = [act[2] for job in (plain, yes, no) for act in audit_entries(db, job)]
    assert actions == ["job.cancelled", "job.approved", "job.rejected"]


@over_async
async def test_audit_entry_commits_with_async_transaction(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    job = await client.submit("t")
    async with opened(dsn) as own:
        await client.cancel(job.id, "why", Actor("ann", door="http"), conn=own.conn)
        await own.rollback()
    assert audit_entries(db, job.id) == []
    async with opened(dsn) as own:
        await client.cancel(job.id, "why", Actor("ann", door="http"), conn=own.conn)
        assert audit_entries(db, job.id) == []
        await own.commit()
    assert audit_entries(db, job.id) == [("ann", "http", "job.cancelled", "approved", "cancelled")]


def test_sync_client_leaves_one_audit_entry(plain_client: Client, db: StoreClient) -> None:
    job = plain_client.sync.submit("t")
    plain_client.sync.cancel(job.id, by="ann")
    assert audit_entries(db, job.id) == [
        ("ann", "python", "job.cancelled", "approved", "cancelled")
    ]
