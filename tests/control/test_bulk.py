"""One verb on all matching jobs: counted first, in batches, refusals by reason, repeatable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from laneway.control import bulk
from laneway.control import jobs as control
from laneway.control.bulk import BulkProgress, BulkRequest, BulkVerb, Preview
from laneway.domain import verb_rules
from laneway.domain.filter import JobFilter
from laneway.domain.permissions import Reach, Term
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable, InvalidInput, LanewayError, Refused
from laneway.store import handler_waits
from laneway.store import jobs as store
from laneway.store.database import Database
from laneway.store.handler_waits import NewWait
from tests.support.job_factory import JobFactory

EVERY = JobFilter()


def order(verb: BulkVerb, wanted: JobFilter = EVERY, **more: Any) -> BulkRequest:
    return BulkRequest(verb=verb, wanted=wanted, **more)


async def preview(db: Database, asked: BulkRequest) -> Preview:
    return await bulk.preview(db, asked, by="ann")


async def run(db: Database, asked: BulkRequest, upto: int | None = None) -> BulkProgress:
    tallies = [tally async for tally in bulk.run(db, asked, by="ann", upto=upto)]
    return tallies[-1] if tallies else BulkProgress(asked.verb)


def statuses(factory: JobFactory) -> dict[UUID, str]:
    return dict(factory.conn.execute("select id, status from laneway.jobs_view").fetchall())


def awaiting(
    factory: JobFactory, cost: float | None = None, unit: str = "EUR", **fields: Any
) -> UUID:
    """A job that waits for approval."""
    job_id = factory.submit("spend", **fields)
    factory.conn.execute(
        "with r as (delete from laneway.ready w using laneway.jobs j"
        "           where j.id = %s and w.seq = j.seq returning w.seq, w.rank),"
        " a as (insert into laneway.approvals (seq, analysis, cost, unit)"
        "       select seq, '{}', %s, %s from r)"
        " insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " select seq, 'spend', 'default', rank, clock_timestamp() + interval '1 h' from r",
        [job_id, cost, unit],
    )
    return job_id


def sleeping(factory: JobFactory, **fields: Any) -> UUID:
    """A job whose handler sleeps."""
    names = "".join(f", {name} => %({name})s" for name in fields)
    factory.conn.execute(f"select laneway.submit('a'{names})", fields)
    (claim,) = factory.claim("a")
    assert factory.run(handler_waits.begin(claim, NewWait("nap", "sleep", 60.0))).state == "open"
    factory.settle(claim, "wait", result="nap")
    return claim.job_id


# -- valid requests ---------------------------------------------------------------------------


@pytest.mark.parametrize("verb", BulkVerb)
async def test_empty_filter_must_be_meant(db: Database, verb: BulkVerb) -> None:
    more: dict[str, Any] = {"reason": "r", "priority": 1}
    with pytest.raises(Refused, match="takes every job"):
        await preview(db, order(verb, **more))
    with pytest.raises(Refused):
        await run(db, order(verb, **more))
    assert (await preview(db, order(verb, everything=True, **more))).matched == 0


@pytest.mark.parametrize(
    "asked,field",
    [
        (order(BulkVerb.RETRY, JobFilter(status=Status.COMPLETED)), "status"),
        (order(BulkVerb.CANCEL, JobFilter(status=Status.FAILED)), "status"),
        (order(BulkVerb.DELETE, JobFilter(status=Status.RUNNING)), "status"),
        (order(BulkVerb.APPROVE, JobFilter(status=Status.APPROVED)), "status"),
        (order(BulkVerb.RUN_NOW, JobFilter(status=Status.RUNNING)), "status"),
        (order(BulkVerb.REJECT, JobFilter(tag="x")), "reason"),
        (order(BulkVerb.REPRIORITIZE, JobFilter(tag="x")), "priority"),
        (order(BulkVerb.REPRIORITIZE, JobFilter(tag="x"), priority=40_000), "priority"),
        (order(BulkVerb.REPRIORITIZE, JobFilter(tag="x"), priority="5"), "priority"),
        (order(BulkVerb.APPROVE, JobFilter(max_cost=5)), "unit"),
        (order(BulkVerb.CANCEL, JobFilter(tag="x"), reason="\x00"), "reason"),
        (order(BulkVerb.CANCEL, JobFilter(q="")), "q"),
    ],
)
async def test_order_that_breaks_a_rule_is_refused_before_it_begins(
    db: Database, asked: BulkRequest, field: str
) -> None:
    for ask in (preview, run):
        with pytest.raises(InvalidInput) as refused:
            await ask(db, asked)
        assert refused.value.field == field


# -- counting ---------------------------------------------------------------------------------


async def test_preview_counts_shows_the_newest_and_changes_nothing(
    db: Database, factory: JobFactory
) -> None:
    failed = [factory.failed() for _ in range(7)]
    factory.completed()
    before = statuses(factory)
    found = await preview(db, order(BulkVerb.RETRY, JobFilter(job_type="greet")))
    assert (found.matched, found.is_more, found.count) == (7, False, "7")
    assert [job.id for job in found.sample] == failed[:1:-1]
    assert found.to_dict()["sample"] == [str(job_id) for job_id in failed[:1:-1]]
    assert statuses(factory) == before


async def test_counting_stops_at_the_bound(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "COUNT_BOUND", 4)
    for _ in range(3):
        factory.submit("a")
    assert (await preview(db, order(BulkVerb.CANCEL, everything=True))).count == "3"
    for _ in range(3):
        factory.running("b")
    found = await preview(db, order(BulkVerb.CANCEL, everything=True))
    assert (found.matched, found.is_more, found.count) == (4, True, "4 or more")


async def test_retry_takes_only_failures_with_the_named_error(
    db: Database, factory: JobFactory
) -> None:
    failed = [factory.failed(), factory.failed("other")]
    claim = factory.running()
    factory.settle(claim, "giveup", error='{"type": "ConnectTimeout", "message": "late"}')
    asked = order(BulkVerb.RETRY, JobFilter(job_type="greet", error_type="ConnectTimeout"))
    assert (await preview(db, asked)).count == "1"
    assert (await run(db, asked)).done == 1
    left = statuses(factory)
    assert [left[job_id] for job_id in (*failed, claim.job_id)] == ["failed", "failed", "approved"]
    cancel = order(BulkVerb.CANCEL, JobFilter(error_type="ConnectTimeout"))
    assert (await preview(db, cancel)).matched == 0, "no job that waits has an error"


# -- doing ------------------------------------------------------------------------------------


async def test_cancel_takes_all_that_has_not_ended(db: Database, factory: JobFactory) -> None:
    waiting = [factory.submit("a"), factory.submit("b", delay=60.0), awaiting(factory)]
    running, done = factory.running("c"), factory.completed("d")
    with factory.listening() as heard:
        tally = await run(db, order(BulkVerb.CANCEL, everything=True, reason="enough"))
    assert (tally.done, tally.refused) == (4, {})
    assert heard == [f"cancel {factory.worker_id}"]
    now = statuses(factory)
    assert [now[job_id] for job_id in waiting] == ["cancelled"] * 3
    assert (now[running.job_id], now[done]) == ("running", "completed")
    stored = factory.conn.execute("select distinct cancel_by, cancel_reason from laneway.outcome"
                              " where status = 'cancelled'").fetchall()  # fmt: skip
    assert stored == [("ann", "enough")]


async def test_retry_takes_failed_jobs_and_cancelled_ones_only_by_name(
    db: Database, factory: JobFactory
) -> None:
    failed, cancelled = factory.failed("a"), factory.submit("b")
    await run(db, order(BulkVerb.CANCEL, everything=True))
    with factory.listening() as heard:
        assert (await run(db, order(BulkVerb.RETRY, everything=True))).done == 1
    assert heard == ["wake a"]
    assert statuses(factory) == {failed: "approved", cancelled: "cancelled"}
    assert (await run(db, order(BulkVerb.RETRY, JobFilter(status=Status.CANCELLED)))).done == 1
    assert statuses(factory)[cancelled] == "approved"


async def test_bulk_retry_queues_parents_before_their_children(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    jobs: list[UUID] = []
    for _ in range(5):
        jobs.append(factory.submit("a", after=jobs[-1:], after_failure="run"))
    await run(db, order(BulkVerb.CANCEL, everything=True))
    tally = await run(db, order(BulkVerb.RETRY, JobFilter(status=Status.CANCELLED)))
    assert tally.done == 5
    assert [statuses(factory)[job_id] for job_id in jobs] == ["approved", *["waiting"] * 4]


async def test_delete_takes_all_that_has_ended(db: Database, factory: JobFactory) -> None:
    for make in (factory.completed, factory.failed):
        make("a")
    waiting = factory.submit("b")
    assert (await run(db, order(BulkVerb.DELETE, everything=True))).done == 2
    assert statuses(factory) == {waiting: "approved"}


async def test_delete_names_why_it_keeps_a_job(db: Database, factory: JobFactory) -> None:
    parent = factory.completed("a")
    factory.submit("b", after=[parent])
    tally = await run(db, order(BulkVerb.DELETE, everything=True))
    assert (tally.done, tally.refused) == (0, {verb_rules.NEEDED: 1})
    with pytest.raises(Refused, match="may read its result"):
        await control.delete(db, parent, by="ann")


async def test_bulk_reprioritize_takes_waiting_jobs(db: Database, factory: JobFactory) -> None:
    job_id = factory.submit("a", tags=("urgent",))
    factory.submit("a")
    assert (
        await run(db, order(BulkVerb.REPRIORITIZE, JobFilter(tag="urgent"), priority=9))
    ).done == 1
    assert factory.claim("a")[0].job_id == job_id


async def test_bulk_run_now_counts_and_takes_only_delayed_jobs(
    db: Database, factory: JobFactory
) -> None:
    factory.failed("a")
    later = [factory.submit("a", delay=3600.0, created_by="ann") for _ in range(2)]
    factory.submit("a")
    factory.submit("b", delay=3600.0)
    due = factory.submit("a", delay=3600.0)
    factory.conn.execute(
        "update laneway.delayed d set run_at = clock_timestamp() - interval '1 s'"
        " from laneway.jobs j where j.seq = d.seq and j.id = %s", [due]
    )  # fmt: skip
    asked = order(BulkVerb.RUN_NOW, JobFilter(job_type="a"))
    seen = await preview(db, asked)
    assert (seen.matched, seen.is_more) == (2, False)
    assert {job.id for job in seen.sample} == set(later)
    own = JobFilter(within=Reach((Term(owner="ann"), Term(lanes=frozenset({"interactive"})))))
    assert (await preview(db, order(BulkVerb.RUN_NOW, own, everything=True))).matched == 2
    for lane, matched in (("default", 2), ("interactive", 0)):
        wanted = JobFilter(job_type="a", lane=lane)
        assert (await preview(db, order(BulkVerb.RUN_NOW, wanted))).matched == matched
    with factory.listening() as heard:
        tally = await run(db, asked)
    assert (tally.done, tally.refused) == (2, {})
    assert heard == ["wake a"]
    assert set(later) < {claim.job_id for claim in factory.claim("a", 3)}


async def test_bulk_run_now_wakes_jobs_whose_handlers_sleep(
    db: Database, factory: JobFactory
) -> None:
    flow = uuid4()
    factory.conn.execute("select laneway.create_flow(%s, 'nightly')", [flow])
    asleep, alone = (sleeping(factory, **fields) for fields in ({"flow": flow}, {}))
    parent = factory.submit("a", delay=3600.0)
    child = factory.conn.execute(
        "select job_id from laneway.submit('a', after => %s, delay => '1 h')", [[parent]]
    ).fetchone()
    assert child is not None
    for wanted, expected in (
        (JobFilter(flow=flow), {asleep}),
        (JobFilter(job_type="a", status=Status.WAITING), {asleep, alone}),
        (JobFilter(job_type="a"), {asleep, alone, parent}),
    ):
        seen = await preview(db, order(BulkVerb.RUN_NOW, wanted))
        assert (seen.matched, {job.id for job in seen.sample}) == (len(expected), expected)
    own = JobFilter(job_type="a", within=Reach((Term(workspace="other"),)))
    assert (await preview(db, order(BulkVerb.RUN_NOW, own))).matched == 0
    tally = await run(db, order(BulkVerb.RUN_NOW, JobFilter(job_type="a")))
    assert (tally.done, tally.refused) == (3, {})
    assert statuses(factory) == {
        asleep: "approved", alone: "approved", parent: "approved", child[0]: "waiting"
    }  # fmt: skip


async def test_bulk_approve_takes_only_jobs_with_known_low_cost(
    db: Database, factory: JobFactory
) -> None:
    cheap, dear, unknown = (awaiting(factory, cost) for cost in (4.5, 12.0, None))
    tokens = awaiting(factory, 3.0, "tokens")
    wanted = JobFilter(max_cost=5, unit="EUR")
    assert (await preview(db, order(BulkVerb.APPROVE, wanted))).matched == 1
    with factory.listening() as heard:
        tally = await run(db, order(BulkVerb.APPROVE, wanted, reason="small"))
    assert (tally.done, tally.refused) == (1, {})
    assert heard == ["wake spend"]
    now = statuses(factory)
    assert now[cheap] == "approved"
    assert {now[job_id] for job_id in (dear, unknown, tokens)} == {"awaiting_approval"}
    stored = factory.conn.execute("select decided_by, comment from laneway.approvals"
                              " where decision = 'approved'").fetchall()  # fmt: skip
    assert stored == [("ann", "small")]


async def test_bulk_approval_requires_second_person(db: Database, factory: JobFactory) -> None:
    factory.publish("spend")
    factory.conn.execute("update laneway.job_types set two_person = true where name = 'spend'")
    mine, hers = (awaiting(factory, 1.0, created_by=who) for who in ("ann", "bea"))
    tally = await run(db, order(BulkVerb.APPROVE, JobFilter(job_type="spend")))
    assert (tally.done, tally.refused.total()) == (1, 1)
    assert "another person" in next(iter(tally.refused))
    assert statuses(factory) == {mine: "awaiting_approval", hers: "approved"}


async def test_reject_cancels_with_the_reason(db: Database, factory: JobFactory) -> None:
    job_id = awaiting(factory)
    assert (await run(db, order(BulkVerb.REJECT, everything=True, reason="no money"))).done == 1
    stored = factory.conn.execute("select status, cancel_reason from laneway.jobs_view"
                              " where id = %s", [job_id]).fetchone()  # fmt: skip
    assert stored == ("cancelled", "rejected: no money")


async def test_refusals_are_counted_by_reason(db: Database, factory: JobFactory) -> None:
    for _ in range(2):
        factory.failed(unique_key="k")
    factory.submit(unique_key="k")
    tally = await run(db, order(BulkVerb.RETRY, JobFilter(job_type="greet")))
    assert tally.done == 0
    assert tally.refused == {"another job that has not ended holds its unique_key": 2}
    assert tally.to_dict()["refused"] == dict(tally.refused)


async def test_every_filter_narrows(db: Database, factory: JobFactory) -> None:
    factory.register(name="host:1")
    mine = factory.failed("a", tags=("x",), workspace="w", payload='{"path": "Invoice-7.PDF"}')
    factory.failed("b")
    factory.conn.execute(
        "update laneway.jobs set created_at = created_at - interval '2 days' where id = %s", [mine]
    )
    factory.conn.execute(
        "insert into laneway.approvals (seq, cost, unit) select seq, 4.5, 'EUR' from laneway.jobs"
        " where id = %s",
        [mine],
    )
    yesterday = factory.conn.execute("select clock_timestamp() - interval '1 day'").fetchone()
    assert yesterday is not None
    for wanted in (
        JobFilter(job_type="a"),
        JobFilter(tag="x"),
        JobFilter(workspace="w"),
        JobFilter(until=yesterday[0]),
        JobFilter(older_than=86400),
        JobFilter(q="invoice-7"),
        JobFilter(q=str(mine)[:18].upper()),
        JobFilter(max_cost=4.5, unit="EUR"),
        JobFilter(max_cost=5, unit="EUR"),
        JobFilter(worker="host:1", lane="default", tag="x"),
        JobFilter(worker=str(factory.worker_id), tag="x"),
    ):
        found = await preview(db, order(BulkVerb.RETRY, wanted))
        assert [job.id for job in found.sample] == [mine], wanted
    for nothing in (
        JobFilter(max_cost=4.4, unit="EUR"),
        JobFilter(max_cost=5, unit="tokens"),
        JobFilter(lane="interactive"),
        JobFilter(worker="host:2"),
        JobFilter(q="%"),
        JobFilter(q="invoice_7"),
    ):
        assert (await preview(db, order(BulkVerb.RETRY, nothing))).matched == 0, nothing


async def test_text_of_an_error_is_found_in_either_case(db: Database, factory: JobFactory) -> None:
    claim = factory.running()
    factory.settle(claim, "giveup", error='{"type": "Timeout", "message": "Read Timed Out"}')
    factory.failed()
    for q in ("timed out", "TIMEOUT", "timeout: read"):
        found = await preview(db, order(BulkVerb.RETRY, JobFilter(status=Status.FAILED, q=q)))
        assert [job.id for job in found.sample] == [claim.job_id]


# -- large, interrupted, raced ----------------------------------------------------------------


def fail_many(factory: JobFactory, count: int) -> None:
    factory.conn.execute(
        "with j as (insert into laneway.jobs (id, job_type, payload)"
        "  select gen_random_uuid(), 'many', '{}' from generate_series(1, %s) returning seq)"
        " insert into laneway.outcome"
        "  (seq, status, workspace, job_type, priority, attempt, retries)"
        " select seq, 'failed', 'default', 'many', 0, 1, 3 from j",
        [count],
    )


async def test_it_goes_in_batches_and_run_again_goes_on(db: Database, factory: JobFactory) -> None:
    fail_many(factory, 450)
    asked = order(BulkVerb.RETRY, JobFilter(job_type="many"))
    seen = []
    rounds = bulk.run(db, asked, by="ann")
    async for tally in rounds:
        seen.append(tally.done)
        if len(seen) == 2:
            break  # interrupted
    await rounds.aclose()
    assert seen == [50, 250]
    assert (await preview(db, asked)).matched == 200
    assert (await run(db, asked)).done == 200
    assert set(statuses(factory).values()) == {"approved"}


async def test_lost_database_keeps_finished_part(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_many(factory, 20)
    seen = 0
    retry: Callable[..., Any] = store.retry

    def broken(job_id: UUID, **more: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > 7:
            raise DatabaseUnavailable("gone")
        return retry(job_id, **more)

    monkeypatch.setattr(store, "retry", broken)
    with pytest.raises(LanewayError):
        await run(db, order(BulkVerb.RETRY, JobFilter(job_type="many")))
    assert sorted(statuses(factory).values()) == ["approved"] * 7 + ["failed"] * 13


async def test_jobs_that_come_meanwhile_are_not_touched(db: Database, factory: JobFactory) -> None:
    fail_many(factory, 300)
    rounds = bulk.run(db, order(BulkVerb.DELETE, JobFilter(job_type="many")), by="ann")
    await anext(rounds)
    fail_many(factory, 10)
    async for _ in rounds:
        pass
    assert len(statuses(factory)) == 10


async def test_bulk_takes_exactly_counted_jobs(db: Database, factory: JobFactory) -> None:
    """Two statuses, the second of which is read long after the first."""
    counted = [awaiting(factory), factory.submit("b")]
    asked = order(BulkVerb.CANCEL, everything=True)
    found = await preview(db, asked)
    assert found.matched == 2
    assert found.to_dict()["upto"] == found.upto
    after_the_preview = [awaiting(factory), factory.submit("b")]
    rounds = bulk.run(db, asked, by="ann", upto=found.upto)
    assert (await anext(rounds)).done == 1
    after_the_beginning = [factory.submit("b"), factory.running("c").job_id]
    assert [tally.done async for tally in rounds] == [2]
    now = statuses(factory)
    assert {now[job_id] for job_id in counted} == {"cancelled"}
    assert "cancelled" not in {now[job_id] for job_id in after_the_preview + after_the_beginning}


async def test_bulk_without_preview_takes_jobs_existing_at_start(
    db: Database, factory: JobFactory
) -> None:
    awaiting(factory)
    factory.submit("b")
    rounds = bulk.run(db, order(BulkVerb.CANCEL, everything=True), by="ann")
    await anext(rounds)
    later = [factory.submit("b"), factory.running("c").job_id]
    assert [tally.done async for tally in rounds] == [2]
    now = statuses(factory)
    asked = factory.conn.execute("select count(*) from laneway.lease where cancel_requested_at"
                               " is not null").fetchone()  # fmt: skip
    assert ([now[job_id] for job_id in later], asked) == (["approved", "running"], (0,))


@pytest.mark.parametrize("upto", [-1, 2**63, "7", True])
async def test_unknown_end_of_preview_is_refused(db: Database, upto: Any) -> None:
    with pytest.raises(InvalidInput, match="upto"):
        await run(db, order(BulkVerb.CANCEL, everything=True), upto)


async def test_age_of_jobs_uses_databases_clock(db: Database, factory: JobFactory) -> None:
    old, new = factory.failed("a"), factory.failed("a")
    factory.conn.execute(
        "update laneway.jobs set created_at = created_at - interval '2 h' where id = %s", [old]
    )
    for wanted, ids in (
        (JobFilter(newer_than=3600), [new]),
        (JobFilter(newer_than=86400), [new, old]),
        (JobFilter(newer_than=86400, older_than=3600), [old]),
    ):
        for status in (None, Status.FAILED):
            found = await preview(db, order(BulkVerb.RETRY, replace(wanted, status=status)))
            assert [job.id for job in found.sample] == ids, (wanted, status)
