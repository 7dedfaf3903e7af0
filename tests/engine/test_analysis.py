"""Analyses run in workers before anyone approves, and only what was approved runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from laneway import Analysis, Approval, Cancel, Context, JobHandle, Snooze, SyncContext
from laneway.domain.claim import Claim
from laneway.errors import InvalidInput, JobFailed, Refused
from laneway.store.caller_transaction import finish
from tests.engine.crew import Crew
from tests.engine.workshop import SOON, Workshop, until

CHEAP = Approval(below_cost=5, currency="EUR")


async def waits(shop: Workshop, job: JobHandle) -> None:
    await until(lambda: shop.status(job) == "awaiting_approval")


async def test_a_job_is_analysed_approved_and_run(either_shop: Workshop) -> None:
    shop = either_shop
    shop.lane("analysis", poll_interval_ms=100)

    @shop.lw.handler("rebuild", approval=True)
    async def rebuild(ctx: Context, index: str, shards: int = 4) -> str:
        return f"{index} {ctx.attempt} {ctx.checkpoint}"

    @rebuild.analyze
    async def plan(ctx: Context, shards: int) -> Analysis:
        await ctx.save("mine")
        ctx.log("looked at it")
        return Analysis(plan={"shards": shards}, cost=shards, currency="EUR", warnings=["slow"])

    await shop.hire()
    job = await shop.lw.submit("rebuild", {"index": "a"}, created_by="ann")
    assert job.status == "pending"
    await waits(shop, job)
    seen = await job.get()
    assert seen.analysis == {
        "plan": {"shards": 4}, "cost": {"amount": 4, "currency": "EUR"}, "warnings": ["slow"],
    }  # fmt: skip
    assert str(seen.cost) == "4 EUR"
    (first,) = seen.attempts
    assert (first.outcome, [one.message for one in first.log]) == ("analyzed", ["looked at it"])
    await shop.lw.approve(job.id, "bob", "go")
    # The attempt goes on counting; what the analysis saved was its own.
    assert await job.wait(60) == "a 2 None"
    seen = await job.get()
    assert (seen.approved_by, seen.lane, seen.retries) == ("bob", "default", 0)
    assert shop.holds_nothing()


async def test_a_plain_analysis_runs_in_a_thread(shop: Workshop) -> None:
    @shop.lw.handler("index", approval=CHEAP)
    def index(ctx: SyncContext, path: str) -> str:
        return path

    @index.analyze
    def plan(path: str) -> Analysis:
        assert threading.current_thread() is not threading.main_thread()
        return Analysis(cost=len(path), currency="EUR")

    await shop.hire()
    cheap = await index.submit(path="12345")
    assert await cheap.wait(60) == "12345"
    assert (await cheap.get()).approved_by == "policy"
    dear = await index.submit(path="123456")
    await waits(shop, dear)


async def test_the_analysis_comes_at_once_and_the_run_at_its_time(shop: Workshop) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        return Analysis(tokens=1)

    await shop.hire()
    made = await shop.lw.submit("job", delay=3600)
    await until(lambda: shop.status(made) == "approved")
    seen = await made.get()
    assert seen.cost is not None
    assert seen.attempt == 1
    assert shop.one("select count(*) from laneway.delayed") == 1


async def test_analysis_has_three_separate_tries(shop: Workshop) -> None:
    tries: list[int] = []

    @shop.lw.handler("job", approval=True, max_retries=0, retry=SOON)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Any:
        tries.append(ctx.attempt)
        return {"cost": 1} if len(tries) == 1 else 1 / 0

    await shop.hire()
    made = await shop.lw.submit("job")
    ended = await shop.ended(made)
    assert (ended.status, tries) == ("failed", [1, 2, 3])
    assert ended.error is not None
    assert ended.error.type == "ZeroDivisionError"
    first = ended.attempts[0].error
    assert first is not None
    assert "must be an Analysis, got dict" in first.message
    assert shop.holds_nothing()


async def test_an_analysis_can_be_too_slow_put_itself_off_or_call_it_off(shop: Workshop) -> None:
    @shop.lw.handler("job", timeout=0.05, retry=SOON)
    async def job(ctx: Context, how: str) -> None: ...

    @job.analyze
    async def plan(ctx: Context, how: str) -> Analysis:
        if how == "slow":
            await asyncio.Event().wait()
        if how == "later" and ctx.attempt == 1:
            raise Snooze(0.01)
        if how == "never":
            raise Cancel("no need")
        return Analysis()

    await shop.hire()
    slow, later, never = [
        await shop.lw.submit("job", {"how": h}) for h in ("slow", "later", "never")
    ]
    error = (await shop.ended(slow)).error
    assert error is not None
    assert error.type == "Timeout"
    assert (await shop.ended(later)).status == "completed"
    assert (await shop.ended(never)).status == "cancelled"


async def test_a_running_analysis_stops_when_its_job_is_cancelled(shop: Workshop) -> None:
    stopped = asyncio.Event()

    @shop.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Analysis()

    await shop.hire()
    made = await shop.lw.submit("job")
    await until(lambda: shop.one("select count(*) from laneway.lease") == 1)
    assert await made.cancel("not needed") == "pending"
    assert (await shop.ended(made)).status == "cancelled"
    assert stopped.is_set()
    await until(shop.holds_nothing)


async def test_a_lapsed_analysis_is_fenced_and_tried_again(shop: Workshop) -> None:
    go = asyncio.Event()

    @shop.lw.handler("job", approval=True, retry=SOON)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Analysis:
        if ctx.attempt == 1:
            await go.wait()
        return Analysis(tokens=ctx.attempt)

    worker = await shop.hire()
    made = await shop.lw.submit("job")
    await until(lambda: worker.executor.active)
    shop.lapse(made)
    await waits(shop, made)
    go.set()
    seen = await made.get()
    assert str(seen.cost) == "2 tokens"
    assert [one.outcome for one in seen.attempts] == ["lost", "analyzed"]


async def test_the_analysis_of_a_killed_worker_is_tried_again(shop: Workshop) -> None:
    shop.lane("analysis", lease_seconds=2)
    job = await shop.lw.submit("costly")
    assert job.status == "approved", "no worker has published it"
    await job.cancel()
    with Crew(shop.dsn) as crew:
        await until(lambda: shop.rows("select 1 from laneway.job_types where name = 'costly'"))
        job = await shop.lw.submit("costly")
        assert job.status == "pending"
        await until(lambda: shop.one("select count(*) from laneway.lease") == 1)
        crew.kill()
    with Crew(shop.dsn):
        await waits(shop, job)
        assert [one.outcome for one in (await job.get()).attempts] == ["lost", "analyzed"]
        await shop.lw.approve(job.id, "ann")
        assert await job.wait(60) == 3


async def test_stopping_worker_releases_its_analyses(shop: Workshop) -> None:
    @shop.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        await asyncio.Event().wait()
        return Analysis()

    worker = await shop.hire()
    made = await shop.lw.submit("job")
    await until(lambda: worker.executor.active)
    await worker.stop(0.0)
    assert shop.status(made) == "pending"
    assert shop.one("select retries from laneway.jobs_view where id = %s", made.id) == 0
    assert shop.holds_nothing()


async def test_analyses_have_separate_slots_and_starve_no_job(shop: Workshop) -> None:
    gate, running, most = asyncio.Event(), 0, 0

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return Analysis()

    @shop.lw.handler("plain")
    async def plain(ctx: Context) -> str:
        return "through"

    for _ in range(2):
        await shop.hire()
    made = await shop.lw.submit_many([("job", {})] * 12)
    assert {one.status for one in made} == {"pending"}
    await until(lambda: running == 4)
    other = await shop.lw.submit("plain")
    assert await other.wait(60) == "through"
    assert shop.one("select count(*) from laneway.lease") == 4
    gate.set()
    for one in made:
        await one.wait(60)
    assert most <= 4


@pytest.mark.parametrize("table", ["jobs", "approvals"])
async def test_job_changed_after_its_approval_never_runs(shop: Workshop, table: str) -> None:
    ran: list[object] = []

    @shop.lw.handler("pay", approval=True)
    async def pay(ctx: Context, amount: int) -> int:
        ran.append(amount)
        return amount

    @pay.analyze
    async def plan(amount: int) -> Analysis:
        return Analysis(plan=amount)

    await shop.hire()
    job = await pay.submit(amount=1)
    await waits(shop, job)
    # Held back, so that the change comes before the claim.
    shop.lane("default", enabled=False)
    await shop.lw.approve(job.id, "ann")
    change = ("payload = '{\"amount\": 1000}'" if table == "jobs" else
              "analysis = jsonb_set(analysis, '{plan}', '0')")  # fmt: skip
    assert shop.do(f"update laneway.{table} set {change} where seq = %s", shop.seq(job)) == 1
    shop.lane("default", enabled=True)
    ended = await shop.ended(job)
    assert (ended.status, ran) == ("failed", [])
    assert ended.error is not None
    assert ended.error.type == "NotAsApproved"
    with pytest.raises(JobFailed, match="not what was approved"):
        await job.wait(60)
    # A retry asks again, about what it is now.
    shop.do("select laneway.retry(%s)", shop.seq(job))
    await waits(shop, job)
    amount = 1000 if table == "jobs" else 1
    assert (await job.get()).analysis["plan"] == amount  # type: ignore[index]
    await shop.lw.approve(job.id, "ann")
    assert await job.wait(60) == amount


async def test_an_analysis_cannot_finish_or_approve_its_own_job(shop: Workshop) -> None:
    refusals: list[Exception] = []

    @shop.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Analysis:
        try:
            await shop.lw.approve(ctx.job_id, "me")
        except Refused as error:
            refusals.append(error)
        try:
            seq = shop.one("select seq from laneway.jobs where id = %s", ctx.job_id)
            mine = Claim(seq, ctx.job_id, ctx.attempt)
            await shop.lw.database.run(finish(mine, "1", 0.0))
        except InvalidInput as error:
            refusals.append(error)
        return Analysis()

    await shop.hire()
    made = await shop.lw.submit("job")
    await waits(shop, made)
    assert len(refusals) == 2
    assert "is pending" in str(refusals[0])


async def test_two_person_type_needs_a_submitter_and_another_approver(shop: Workshop) -> None:
    @shop.lw.handler("job", approval=Approval(two_person=True))
    async def job(ctx: Context) -> str:
        return "done"

    with pytest.raises(InvalidInput, match="created_by: must be given"):
        await shop.lw.submit("job")
    await shop.hire()
    made = await shop.lw.submit("job", created_by="ann")
    assert made.status == "awaiting_approval"
    with pytest.raises(Refused, match="another person than its submitter"):
        await shop.lw.approve(made.id, "ann")
    await shop.lw.approve(made.id, "bob")
    assert await made.wait(60) == "done"
