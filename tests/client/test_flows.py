"""Flows and `after=` from Python, through every kind of connection."""

# ruff: noqa: PT012 - the end of an `async with` block is what raises

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from laneway.client import Client
from laneway.domain.flow import FlowStatus
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable, InvalidInput, NotFound, Refused
from laneway.store import flow_changes
from tests.client.test_conn import OpenAsync, OpenSync, over_async, over_sync
from tests.support.store_client import StoreClient
from tests.support.worker_harness import wait_until


def parents(db: StoreClient, job_id: UUID) -> list[UUID]:
    rows = db.conn.execute(
        "select p.id from laneway.jobs j join laneway.links l using (seq)"
        " cross join unnest(l.parents) with ordinality u (seq, n)"
        " join laneway.jobs p on p.seq = u.seq where j.id = %s order by u.n",
        [job_id],
    )
    return [row[0] for row in rows.fetchall()]


async def test_job_after_others_waits_for_them(client: Client, db: StoreClient) -> None:
    first = await client.submit("extract")
    second = await client.submit("clean")
    last = await client.submit("load", after=[first, str(second.id), first.id])
    assert last.status is Status.WAITING
    assert parents(db, last.id) == [first.id, second.id]
    job = await client.get(last.id)
    assert job.waits_for is not None
    assert (job.waits_for.kind, job.waits_for.missing) == ("jobs", 2)
    assert set(job.waits_for.jobs) == {first.id, second.id}


@pytest.mark.parametrize("after_failure", ["cancel", "run", "hold"])
async def test_effect_of_a_failure_is_stored(
    client: Client, db: StoreClient, after_failure: str
) -> None:
    first = await client.submit("extract")
    job = await client.submit("load", after=[first], after_failure=after_failure)  # type: ignore[arg-type]
    assert db.one("select after_failure from laneway.links join laneway.jobs using (seq)"
                  f" where id = '{job.id}'") == after_failure  # fmt: skip


@pytest.mark.parametrize(
    "options, field, words",
    [
        ({"after": "x"}, "after", "list of jobs"),
        ({"after": UUID(int=1)}, "after", "list of jobs"),
        ({"after": ["nope"]}, "after[0]", "'nope'"),
        ({"after": [None]}, "after[0]", "None"),
        ({"after": [UUID(int=1)], "after_failure": "ignore"}, "after_failure", "cancel, run, hold"),
        ({"after": [UUID(int=i) for i in range(1001)]}, "after", "at most 1000 jobs, not 1001"),
    ],
)
async def test_wrong_parents_are_refused(
    client: Client, options: dict[str, object], field: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await client.submit("load", **options)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert words in refused.value.rule


async def test_unknown_parent_is_refused_and_named(client: Client, db: StoreClient) -> None:
    unknown = uuid4()
    with pytest.raises(InvalidInput, match=str(unknown)):
        await client.submit("load", after=[unknown])
    with pytest.raises(InvalidInput, match=str(unknown)):
        await client.submit_many([("load", {}, {"after": [unknown]}), ("other", {})])
    assert db.one("select count(*) from laneway.jobs") == 0


async def test_batch_takes_parents(client: Client, db: StoreClient) -> None:
    first = await client.submit("extract")
    plain, child = await client.submit_many([("extract", {}), ("load", {}, {"after": [first]})])
    assert (plain.status, child.status) == (Status.APPROVED, Status.WAITING)
    assert parents(db, child.id) == [first.id]


async def test_flow_stores_all_its_jobs(client: Client, db: StoreClient) -> None:
    async with client.flow("nightly", tags=["a"], created_by="ann") as flow:
        pages = [flow.add("page", {"n": n}, name=f"page {n}") for n in range(3)]
        join = flow.add("join", after=pages, after_failure="run", priority=7)
    assert [page.status for page in pages] == [Status.APPROVED] * 3
    assert join.status is Status.WAITING
    assert parents(db, join.id) == [page.id for page in pages]
    stored = await flow.get()
    assert (stored.name, stored.tags, stored.created_by) == ("nightly", ("a",), "ann")
    assert (stored.status, stored.counts.jobs) == (FlowStatus.RUNNING, 4)
    job = await client.get(join.id)
    assert (job.flow, job.priority, job.created_by) == (flow.id, 7, "ann")


async def test_flow_of_many_batches_keeps_its_edges(client: Client, db: StoreClient) -> None:
    async with client.flow("wide") as flow:
        pages = [flow.add("page") for _ in range(2_100)]
        join = flow.add("join", after=pages)
    assert db.one("select count(*) from laneway.jobs where flow is not null") == 2_101
    assert parents(db, join.id) == [page.id for page in pages]


async def test_nothing_is_stored_if_the_block_raises(client: Client, db: StoreClient) -> None:
    with pytest.raises(ZeroDivisionError):
        async with client.flow("nightly") as flow:
            flow.add("page")
            _ = 1 / 0
    assert db.one("select count(*) from laneway.jobs") == 0
    with pytest.raises(NotFound):
        await flow.get()


async def test_nothing_is_stored_if_one_job_is_invalid(client: Client, db: StoreClient) -> None:
    with pytest.raises(InvalidInput, match=r"jobs\[1\]"):
        async with client.flow("nightly") as flow:
            flow.add("page")
            flow.add("page", {"n": float("nan")})
    with pytest.raises(InvalidInput, match=str(UUID(int=9))):
        async with client.flow("nightly") as flow:
            flow.add("page", after=[UUID(int=9)])
    assert db.one("select count(*) from laneway.jobs") == 0
    assert db.one("select count(*) from laneway.flows where name = 'nightly'") == 0


@over_async
async def test_flow_is_part_of_the_callers_transaction(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    async with opened(dsn) as own:
        async with client.flow("own", conn=own.conn) as flow:
            flow.add("join", after=[flow.add("page")])
        assert db.one("select count(*) from laneway.jobs") == 0
        await own.commit()
    assert (await flow.get()).counts.jobs == 2


@over_sync
def test_sync_flow_is_part_of_the_callers_transaction(
    plain_client: Client, dsn: str, db: StoreClient, opened: OpenSync
) -> None:
    with opened(dsn) as own:
        with plain_client.sync.flow("own", conn=own.conn) as flow:
            flow.add("join", after=[flow.add("page")])
        own.rollback()
    assert db.one("select count(*) from laneway.jobs") == 0
    with opened(dsn) as own:
        with plain_client.sync.flow("own", conn=own.conn) as flow:
            flow.add("join", after=[flow.add("page")])
        own.commit()
    assert flow.get().counts.jobs == 2


async def test_edge_leads_to_the_job_that_has_the_unique_key(
    client: Client, db: StoreClient
) -> None:
    earlier = await client.submit("page", unique_key="p1")
    async with client.flow("again") as flow:
        page = flow.add("page", unique_key="p1")
        join = flow.add("join", after=[page])
    assert (page.id, page.duplicate) == (earlier.id, True)
    assert parents(db, join.id) == [earlier.id]


async def test_flow_refuses_what_it_cannot_store(client: Client) -> None:
    with pytest.raises(InvalidInput, match="at least one job"):
        async with client.flow("empty"):
            pass
    flow = client.flow("closed")
    with pytest.raises(Refused, match="inside its `with` block"):
        flow.add("page")
    async with client.flow("names") as flow:
        flow.add("page", name="a")
        with pytest.raises(InvalidInput, match="has the name 'a'"):
            flow.add("page", name="a")
        with pytest.raises(InvalidInput, match="is not an option of submit"):
            flow.add("page", workspace="other")  # type: ignore[call-overload]
        with pytest.raises(InvalidInput, match="after_failure"):
            flow.add("page", after_failure="maybe")  # type: ignore[call-overload]
    for name in ("", " x", "a\x00b", "x" * 129, None):
        with pytest.raises(InvalidInput, match="name"):
            client.flow(name)  # type: ignore[arg-type]


async def test_effect_of_a_failure_needs_parents(client: Client) -> None:
    with pytest.raises(InvalidInput, match=r"^after_failure: needs after"):
        await client.submit("page", after_failure="run")
    with pytest.raises(InvalidInput, match="after_failure: needs after"):
        await client.submit_many([("page", {}, {"after_failure": "hold"})])
    async with client.flow("effects") as flow:
        with pytest.raises(InvalidInput, match="after_failure: needs after"):
            flow.add("page", after_failure="run")
        # A computed list may be empty.
        flow.add("page", after=[], after_failure="run")
        flow.add("page", after=(), after_failure="run")
    assert (await client.submit("page", after=(), after_failure="run")).status == "approved"
    await client.submit_many([("page", {}, {"after": (), "after_failure": "hold"})])


async def test_verbs_inside_the_block_say_that_it_has_not_ended(client: Client) -> None:
    async with client.flow("nightly") as flow:
        page = flow.add("page")
        for call in (page.wait, page.get, page.cancel, flow.wait, flow.get, flow.retry):
            with pytest.raises(Refused, match="flow nightly: its `with` block has not ended"):
                await call()
    assert (await page.get()).status is Status.APPROVED
    assert (await flow.get()).counts.jobs == 1


async def test_wrong_kind_of_with_names_the_right_one(client: Client) -> None:
    flow: Any = client.flow("nightly")
    with pytest.raises(InvalidInput, match=r"write `async with lw\.flow"), flow:
        pass
    with client.sync.flow("nightly") as sync_flow:
        sync_flow.add("page")
        page = sync_flow.jobs[0]
        with pytest.raises(Refused, match="has not ended"):
            page.wait()
    unfit: Any = client.sync.flow("nightly")
    with pytest.raises(InvalidInput, match=r"write `with lw\.sync\.flow"):
        async with unfit:
            pass


async def test_flow_refuses_too_many_edges(client: Client, db: StoreClient) -> None:
    with pytest.raises(InvalidInput, match="at most 100000 edges, not 100001"):
        async with client.flow("dense") as flow:
            first = [flow.add("page") for _ in range(1_000)]
            for _ in range(100):
                flow.add("join", after=first)
            flow.add("join", after=first[:1])
    assert db.one("select count(*) from laneway.flows where name = 'dense'") == 0


async def test_flow_is_cancelled_and_retried_as_one(client: Client, db: StoreClient) -> None:
    async with client.flow("nightly") as flow:
        pages = [flow.add("page") for _ in range(3)]
        join = flow.add("join", after=pages)
    done = await flow.cancel("not today")
    assert (done.changed, done.flow.status) == (4, FlowStatus.CANCELLED)
    assert (await client.get(join.id)).cancel_reason == "not today"
    again = await flow.retry()
    assert (again.changed, again.flow.status) == (4, FlowStatus.RUNNING)
    assert (await client.get(join.id)).status is Status.WAITING
    audited = db.conn.execute("select action from laneway.audit where kind = 'flow' order by id")
    assert [row[0] for row in audited.fetchall()] == ["flow.cancelled", "flow.retried"]
    changes = db.conn.execute(
        "select before, after from laneway.audit where kind = 'flow' order by id"
    ).fetchall()
    running = {"name": "nightly", "status": "running", "unfinished": 4}
    cancelled = {"name": "nightly", "status": "cancelled", "unfinished": 0}
    assert changes == [(running, {**cancelled, "reason": "not today"}), (cancelled, running)]


async def test_flow_is_reprioritized_as_one(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_changes, "BATCH", 2)
    async with client.flow("nightly") as flow:
        pages = [flow.add("page") for _ in range(3)]
        join = flow.add("join", after=pages)
    await pages[1].cancel()
    done = await flow.reprioritize(50)
    assert done.changed == 3
    jobs = [await client.get(one.id) for one in (*pages, join)]
    assert [job.priority for job in jobs] == [50, 0, 50, 50]
    action = "select actor, before, after from laneway.audit where action = 'flow.reprioritized'"
    before = {"name": "nightly", "status": "running", "unfinished": 3}
    assert db.rows(action) == [("application", before, {**before, "priority": 50})]
    with pytest.raises(InvalidInput, match="priority"):
        await flow.reprioritize(99_999)


async def test_wait_for_a_flow_names_its_state(client: Client) -> None:
    async with client.flow("nightly") as flow:
        flow.add("page")
    with pytest.raises(TimeoutError, match="0 of 1 job completed"):
        await flow.wait(timeout=0)


@over_async
async def test_event_is_sent_in_the_callers_transaction(
    client: Client, dsn: str, db: StoreClient, opened: OpenAsync
) -> None:
    count = "select count(*) from laneway.sent_events where name = 'reviewed'"
    before = db.one(count)
    async with opened(dsn) as own:
        sent = await client.send_event("reviewed", key="k", payload={"n": 1}, conn=own.conn)
        assert (sent.delivered, db.one(count)) == (0, before)
        await own.commit()
    assert db.one(count) == before + 1


async def test_sender_says_how_long_an_event_is_kept(client: Client, db: StoreClient) -> None:
    await client.send_event("kept", retention=timedelta(days=7))
    kept = "select expires_at - sent_at from laneway.sent_events where name = 'kept'"
    assert db.one(kept) == timedelta(days=7)
    for retention in (0, timedelta(days=367), "1 d"):
        with pytest.raises(InvalidInput, match="retention"):
            await client.send_event("kept", retention=retention)  # type: ignore[arg-type]


async def test_events_sent_at_the_same_time_share_transactions(
    client: Client, db: StoreClient
) -> None:
    keys = [str(n) for n in range(100)]
    sent = await asyncio.gather(*(client.send_event("many", key=key) for key in keys))
    stored = "select id from laneway.sent_events where name = 'many' order by key::integer"
    assert [one.id for one in sent] == [row[0] for row in db.rows(stored)]
    commits = "select count(distinct xmin::text) from laneway.sent_events where name = 'many'"
    assert db.one(commits) == 1


async def test_event_that_the_database_refuses_does_not_stop_others(
    client: Client, db: StoreClient
) -> None:
    db.do("alter table laneway.sent_events add constraint no_odd check (key <> 'odd')")
    try:
        keys = ("a", "odd", "b")
        sent = await asyncio.gather(
            *(client.send_event("mixed", key=key) for key in keys), return_exceptions=True
        )
    finally:
        db.do("alter table laneway.sent_events drop constraint no_odd")
    assert [isinstance(one, Exception) for one in sent] == [False, True, False]
    stored = "select key from laneway.sent_events where name = 'mixed' order by key"
    assert db.rows(stored) == [("a",), ("b",)]


_RAISES: Final = """
create function laneway.refuse_odd() returns trigger language plpgsql as $$
begin
    if new.key = 'odd' then raise exception using errcode = '{state}', message = 'refused'; end if;
    return new;
end $$;
create trigger refuse_odd before insert on laneway.sent_events
    for each row execute function laneway.refuse_odd()
"""
_NO_LONGER: Final = "drop function laneway.refuse_odd() cascade"


@pytest.mark.parametrize(
    "state, kind",
    [("57014", DatabaseUnavailable), ("55P03", DatabaseUnavailable),
     ("40P01", DatabaseUnavailable), ("22003", InvalidInput)],
    ids=["statement timeout", "lock timeout", "deadlock", "value"],
)  # fmt: skip
async def test_event_that_fails_does_not_stop_those_sent_with_it(
    client: Client, db: StoreClient, state: str, kind: type[Exception]
) -> None:
    db.do(_RAISES.replace("{state}", state))
    try:
        sent = await asyncio.gather(
            *(client.send_event("some", key=key) for key in ("a", "odd", "b", "c")),
            return_exceptions=True,
        )
    finally:
        db.do(_NO_LONGER)
    assert [isinstance(one, Exception) for one in sent] == [False, True, False, False]
    assert isinstance(sent[1], kind)
    if isinstance(sent[1], InvalidInput):
        assert sent[1].field == "payload"
    stored = "select key from laneway.sent_events where name = 'some' order by key"
    assert db.rows(stored) == [("a",), ("b",), ("c",)]
    db.do("delete from laneway.sent_events where name = 'some'")


async def test_close_sends_events_that_wait_for_their_batch(
    client: Client, db: StoreClient
) -> None:
    sending = asyncio.create_task(client.send_event("last"))
    await asyncio.sleep(0)
    await client.close()
    await client.database.close()
    stored = db.one("select id from laneway.sent_events where name = 'last'")
    assert (await sending).id == stored


async def test_close_does_not_wait_for_events_that_are_blocked(
    client: Client, db: StoreClient
) -> None:
    with db.conn.transaction():
        db.do("lock table laneway.sent_events in exclusive mode")
        sending = asyncio.create_task(client.send_event("blocked"))
        await wait_until(lambda: is_blocked(db))
        sending.cancel()
        async with asyncio.timeout(10):
            await client.close()
        assert not is_blocked(db)


def is_blocked(db: StoreClient) -> bool:
    here = "(select d.oid from pg_database d where d.datname = current_database())"
    waits = f"select count(*) from pg_locks where not granted and database = {here}"
    return bool(db.one(waits))


async def test_wrong_event_is_refused(client: Client) -> None:
    for name, key in (("", ""), ("x" * 201, ""), ("x", "k" * 513)):
        with pytest.raises(InvalidInput):
            await client.send_event(name, key=key)
    with pytest.raises(InvalidInput, match="payload"):
        await client.send_event("x", payload=float("nan"))
