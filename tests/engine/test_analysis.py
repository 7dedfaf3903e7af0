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
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

CHEAP = Approval(below_cost=5, currency="EUR")


async def waits(harness: WorkerHarness, job: JobHandle) -> None:
    await wait_until(lambda: harness.status(job) == "awaiting_approval")


async def test_job_is_analysed_approved_and_run(either_harness: WorkerHarness) -> None:
    harness = either_harness
    harness.lane("analysis", poll_interval_ms=100)

    @harness.lw.handler("rebuild", approval=True)
    async def rebuild(ctx: Context, index: str, shards: int = 4) -> str:
        return f"{index} {ctx.attempt} {ctx.checkpoint}"

    @rebuild.analyze
    async def plan(ctx: Context, shards: int) -> Analysis:
        await ctx.save("mine")
        ctx.log("looked at it")
        return Analysis(plan={"shards": shards}, cost=shards, currency="EUR", warnings=["slow"])

    await harness.start_worker()
    job = await harness.lw.submit("rebuild", {"index": "a"}, created_by="ann")
    assert job.status == "pending"
    await waits(harness, job)
    seen = await job.get()
    assert seen.analysis == {
        "plan": {"shards": 4}, "cost": {"amount": 4, "currency": "EUR"}, "warnings": ["slow"],
    }  # fmt: skip
    assert str(seen.cost) == "4 EUR"
    (first,) = seen.attempts
    assert (first.outcome, [one.message for one in first.log]) == ("analyzed", ["looked at it"])
    await harness.lw.approve(job.id, "bob", "go")
    # The attempt goes on counting; what the analysis saved was its own.
    assert await job.wait(60) == "a 2 None"
    seen = await job.get()
    assert (seen.approved_by, seen.lane, seen.retries) == ("bob", "default", 0)
    assert harness.holds_nothing()


async def test_plain_analysis_runs_in_a_thread(harness: WorkerHarness) -> None:
    @harness.lw.handler("index", approval=CHEAP)
    def index(ctx: SyncContext, path: str) -> str:
        return path

    @index.analyze
    def plan(path: str) -> Analysis:
        assert threading.current_thread() is not threading.main_thread()
        return Analysis(cost=len(path), currency="EUR")

    await harness.start_worker()
    cheap = await index.submit(path="12345")
    assert await cheap.wait(60) == "12345"
    assert (await cheap.get()).approved_by == "policy"
    dear = await index.submit(path="123456")
    await waits(harness, dear)


async def test_analysis_comes_at_once_and_the_run_at_its_time(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        return Analysis(tokens=1)

    await harness.start_worker()
    made = await harness.lw.submit("job", delay=3600)
    await wait_until(lambda: harness.status(made) == "approved")
    seen = await made.get()
    assert seen.cost is not None
    assert seen.attempt == 1
    assert harness.one("select count(*) from laneway.delayed") == 1


async def test_analysis_has_three_separate_tries(harness: WorkerHarness) -> None:
    tries: list[int] = []

    @harness.lw.handler("job", approval=True, max_retries=0, retry=SOON)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Any:
        tries.append(ctx.attempt)
        return 1 / 0

    await harness.start_worker()
    made = await harness.lw.submit("job")
    ended = await harness.ended(made)
    assert (ended.status, tries) == ("failed", [1, 2, 3])
    assert ended.error is not None
    assert ended.error.type == "ZeroDivisionError"
    assert harness.holds_nothing()


async def test_analysis_can_be_too_slow_put_itself_off_or_call_it_off(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("job", timeout=0.05, retry=SOON)
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

    await harness.start_worker()
    slow, later, never = [
        await harness.lw.submit("job", {"how": h}) for h in ("slow", "later", "never")
    ]
    error = (await harness.ended(slow)).error
    assert error is not None
    assert error.type == "Timeout"
    assert (await harness.ended(later)).status == "completed"
    assert (await harness.ended(never)).status == "cancelled"


async def test_running_analysis_stops_when_its_job_is_cancelled(harness: WorkerHarness) -> None:
    stopped = asyncio.Event()

    @harness.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Analysis()

    await harness.start_worker()
    made = await harness.lw.submit("job")
    await wait_until(lambda: harness.one("select count(*) from laneway.lease") == 1)
    assert await made.cancel("not needed") == "pending"
    assert (await harness.ended(made)).status == "cancelled"
    assert stopped.is_set()
    await wait_until(harness.holds_nothing)


async def test_lapsed_analysis_is_fenced_and_tried_again(harness: WorkerHarness) -> None:
    go = asyncio.Event()

    @harness.lw.handler("job", approval=True, retry=SOON)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Analysis:
        if ctx.attempt == 1:
            await go.wait()
        return Analysis(tokens=ctx.attempt)

    worker = await harness.start_worker()
    made = await harness.lw.submit("job")
    await wait_until(lambda: worker.executor.active)
    harness.lapse(made)
    await waits(harness, made)
    go.set()
    seen = await made.get()
    assert str(seen.cost) == "2 tokens"
    assert [one.outcome for one in seen.attempts] == ["lost", "analyzed"]


async def test_analysis_of_a_killed_worker_is_tried_again(harness: WorkerHarness) -> None:
    harness.lane("analysis", lease_seconds=2)
    job = await harness.lw.submit("costly")
    assert job.status == "approved", "no worker has published it"
    await job.cancel()
    with WorkerCommand(harness.dsn) as command:
        await wait_until(
            lambda: harness.rows("select 1 from laneway.job_types where name = 'costly'")
        )
        job = await harness.lw.submit("costly")
        assert job.status == "pending"
        await wait_until(lambda: harness.one("select count(*) from laneway.lease") == 1)
        command.kill()
    with WorkerCommand(harness.dsn):
        await waits(harness, job)
        assert [one.outcome for one in (await job.get()).attempts] == ["lost", "analyzed"]
        await harness.lw.approve(job.id, "ann")
        assert await job.wait(60) == 3


async def test_stopping_worker_releases_its_analyses(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        await asyncio.Event().wait()
        return Analysis()

    worker = await harness.start_worker()
    made = await harness.lw.submit("job")
    await wait_until(lambda: worker.executor.active)
    await worker.stop(0.0)
    assert harness.status(made) == "pending"
    assert harness.one("select retries from laneway.jobs_view where id = %s", made.id) == 0
    assert harness.holds_nothing()


async def test_analyses_have_separate_slots_and_starve_no_job(harness: WorkerHarness) -> None:
    gate, running, most = asyncio.Event(), 0, 0

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return Analysis()

    @harness.lw.handler("plain")
    async def plain(ctx: Context) -> str:
        return "through"

    for _ in range(2):
        await harness.start_worker()
    made = await harness.lw.submit_many([("job", {})] * 12)
    assert {one.status for one in made} == {"pending"}
    await wait_until(lambda: running == 4)
    other = await harness.lw.submit("plain")
    assert await other.wait(60) == "through"
    assert harness.one("select count(*) from laneway.lease") == 4
    gate.set()
    for one in made:
        await one.wait(60)
    assert most <= 4


@pytest.mark.parametrize("table", ["jobs", "approvals"])
async def test_job_changed_after_its_approval_never_runs(
    harness: WorkerHarness, table: str
) -> None:
    ran: list[object] = []

    @harness.lw.handler("pay", approval=True)
    async def pay(ctx: Context, amount: int) -> int:
        ran.append(amount)
        return amount

    @pay.analyze
    async def plan(amount: int) -> Analysis:
        return Analysis(plan=amount)

    await harness.start_worker()
    job = await pay.submit(amount=1)
    await waits(harness, job)
    # Held back, so that the change comes before the claim.
    harness.lane("default", enabled=False)
    await harness.lw.approve(job.id, "ann")
    change = ("payload = '{\"amount\": 1000}'" if table == "jobs" else
              "analysis = jsonb_set(analysis, '{plan}', '0')")  # fmt: skip
    assert harness.do(f"update laneway.{table} set {change} where seq = %s", harness.seq(job)) == 1
    harness.lane("default", enabled=True)
    ended = await harness.ended(job)
    assert (ended.status, ran) == ("failed", [])
    assert ended.error is not None
    assert ended.error.type == "NotAsApproved"
    with pytest.raises(JobFailed, match="not what was approved"):
        await job.wait(60)
    # A retry asks again, about what it is now.
    harness.do("select laneway.retry(%s)", harness.seq(job))
    await waits(harness, job)
    amount = 1000 if table == "jobs" else 1
    assert (await job.get()).analysis["plan"] == amount  # type: ignore[index]
    await harness.lw.approve(job.id, "ann")
    assert await job.wait(60) == amount


async def test_analysis_cannot_finish_or_approve_its_own_job(harness: WorkerHarness) -> None:
    refusals: list[Exception] = []

    @harness.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Analysis:
        try:
            await harness.lw.approve(ctx.job_id, "me")
        except Refused as error:
            refusals.append(error)
        try:
            seq = harness.one("select seq from laneway.jobs where id = %s", ctx.job_id)
            mine = Claim(seq, ctx.job_id, ctx.attempt)
            await harness.lw.database.run(finish(mine, "1", 0.0))
        except InvalidInput as error:
            refusals.append(error)
        return Analysis()

    await harness.start_worker()
    made = await harness.lw.submit("job")
    await waits(harness, made)
    assert len(refusals) == 2
    assert "is pending" in str(refusals[0])


async def test_two_person_type_needs_a_submitter_and_another_approver(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("job", approval=Approval(two_person=True))
    async def job(ctx: Context) -> str:
        return "done"

    with pytest.raises(InvalidInput, match="created_by: must be given"):
        await harness.lw.submit("job")
    await harness.start_worker()
    made = await harness.lw.submit("job", created_by="ann")
    assert made.status == "awaiting_approval"
    with pytest.raises(Refused, match="needs another person"):
        await harness.lw.approve(made.id, "ann")
    await harness.lw.approve(made.id, "bob")
    assert await made.wait(60) == "done"
