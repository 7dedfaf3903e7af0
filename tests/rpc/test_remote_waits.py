"""Waits of remote handlers: the same calls as with a database, through a server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import psycopg
import pytest

from laneway import Context, SyncContext
from laneway.errors import JobFailed, WaitTimeout
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.attempt_store import RemoteAttemptStore
from tests.api.conftest import People
from tests.rpc.rpc_harness import RpcHarness, assigned
from tests.rpc.test_end_to_end import Far, far
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import SOON, wait_until

__all__ = ["far"]


def send(far: Far, name: str, key: str = "", payload: str = "null") -> None:
    far.do("select laneway.send_event(%s, %s, %s::jsonb, wake => true)", name, key, payload)


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_remote_handler_waits_without_a_worker(far: Far, isolation: str) -> None:
    ran: Counter[str] = Counter()

    @far.app.handler("part")
    async def part(ctx: Context, n: int) -> int:
        ran[f"part {n}"] += 1
        return n * n

    @far.app.handler("async_job")
    async def async_job(ctx: Context, folder: str) -> dict[str, Any]:
        async def look() -> list[int]:
            ran["look"] += 1
            return [1, 2, 3]

        files = await ctx.step("list", look)
        parts = await ctx.run_all("pages", [part.job(n=n) for n in files])
        decision = await ctx.wait_event("reviewed", key=folder, timeout=86400)
        await ctx.sleep("cool-down", 0.05)
        return {"pages": parts, "by": decision["by"], "attempt": ctx.attempt}

    @far.app.handler("thread_job")
    def thread_job(ctx: SyncContext, folder: str) -> dict[str, Any]:
        def look() -> list[int]:
            ran["look"] += 1
            return [1, 2, 3]

        files = ctx.step("list", look)
        parts = ctx.run_all("pages", [part.job(n=n) for n in files])
        decision = ctx.wait_event("reviewed", key=folder, timeout=86400)
        ctx.sleep("cool-down", 0.05)
        return {"pages": parts, "by": decision["by"], "attempt": ctx.attempt}

    await far.hire_remote()
    job = await far.lw.submit(f"{isolation}_job", {"folder": "f7"}, created_by="ada")
    await wait_until(lambda: far.rows("select 1 from laneway.waiting where reason = 'event'"))
    assert far.holds_nothing()
    send(far, "reviewed", "f7", '{"by": "bo"}')
    assert await job.wait(60) == {"pages": [1, 4, 9], "by": "bo", "attempt": 4}
    assert ran == Counter(["look", "part 1", "part 2", "part 3"])
    found = await job.get()
    assert found.retries == 0
    assert sorted(str(one.outcome) for one in found.attempts)[1:] == ["waited"] * 3
    assert far.rows("select distinct created_by from laneway.jobs where job_type = 'part'") == [
        ("ada",)
    ]


async def test_remote_handler_reads_results_of_what_it_came_after(far: Far) -> None:
    @far.app.handler("page")
    async def page(ctx: Context, n: int) -> str:
        return f"{n}:" + "x" * 600_000

    @far.app.handler("join")
    async def join(ctx: Context) -> list[list[Any]]:
        return [[one.job_type, one.status, one.result[:2]] async for one in ctx.results()]

    await far.hire_remote()
    pages = [await far.lw.submit("page", {"n": n}) for n in range(7)]
    after = [str(one.id) for one in pages]
    (row,) = far.rows(
        "select job_id from laneway.submit('join', '{}'::jsonb, after => %s::uuid[])", after
    )
    found = await far.lw.wait(row[0], timeout=60)
    # More than one message: each result is large.
    assert found == [["page", "completed", f"{n}:"] for n in range(7)]


async def test_many_large_sub_jobs_are_sent_in_parts(far: Far) -> None:
    @far.app.handler("page")
    async def page(ctx: Context, text: str) -> int:
        return len(text)

    @far.app.handler("owner")
    async def owner(ctx: Context) -> list[int]:
        # 2 bytes per character: the parts that fit between processes are too large for a server.
        return await ctx.run_all("pages", [page.job(text="é" * 300_000) for _ in range(12)])

    await far.hire_remote()
    job = await far.lw.submit("owner")
    assert await job.wait(60) == [300_000] * 12
    assert far.count("completed") == 13


async def test_remote_sub_job_failure_and_timeout_reach_the_handler(far: Far) -> None:
    caught: list[str] = []

    @far.app.handler("bad", max_retries=0)
    async def bad(ctx: Context) -> None:
        raise ValueError("no")

    @far.app.handler("owner")
    async def owner(ctx: Context) -> None:
        await ctx.run_all("parts", [bad.job()])

    @far.app.handler("patient")
    async def patient(ctx: Context) -> str:
        try:
            await ctx.wait_event("never", timeout=0.05)
        except WaitTimeout as error:
            caught.append(str(error))
        return "went on"

    await far.hire_remote()
    job = await far.lw.submit("owner")
    with pytest.raises(JobFailed, match="SubJobsFailed"):
        await job.wait(60)
    assert (await job.get()).retries == 0
    other = await far.lw.submit("patient")
    assert await other.wait(60) == "went on"
    assert caught == ["event 'never' did not come within 0.05 s"]


async def test_remote_worker_submits_only_where_its_token_reaches(far: Far, people: People) -> None:
    far.do("insert into laneway.worker_lanes (name, job_types) values ('near', '{secret}')")
    far.do("insert into laneway.worker_lanes (name, job_types) values ('far', '{owner}')")
    far.token = people.new("guest", "remote_worker", lanes=["far"]).token

    @far.app.handler("owner", max_retries=0)
    async def owner(ctx: Context) -> None:
        await ctx.run_all("parts", [("secret", {})])

    await far.hire_remote()
    job = await far.lw.submit("owner")
    with pytest.raises(JobFailed, match="InvalidInput"):
        await job.wait(60)
    assert far.rows("select 1 from laneway.jobs where job_type = 'secret'") == []


async def test_older_server_is_named_to_the_handler(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    @far.app.handler("sleeper", max_retries=0)
    async def sleeper(ctx: Context) -> None:
        await ctx.sleep("night", 1)

    take = RemoteAttemptStore.take
    monkeypatch.setattr(
        RemoteAttemptStore, "take", lambda self, one: take(self, one._replace(can_wait=False))
    )
    await far.hire_remote()
    job = await far.lw.submit("sleeper")
    with pytest.raises(JobFailed, match="the server is older than this worker"):
        await job.wait(60)


# The calls themselves -----------------------------------------------------------------------------


async def test_calls_of_another_attempt_or_worker_are_fenced(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    robot = people.new("robot", "remote_worker", scope="all")
    factory.submit("greet")
    calls = rpc.call(robot)
    stream = await calls.connected()
    (one,) = await assigned(stream, 1)
    assert one.can_wait
    claim = pb.Claim(job_id=one.job_id, attempt=one.attempt + 1)
    about: dict[str, Any] = {"worker_id": str(calls.worker_id), "claim": claim}
    sleep: dict[str, Any] = {"name": "n", "kind": "sleep", "duration_ms": 5}
    for name, request in (
        ("ReadWaits", pb.ReadWaitsRequest(**about)),
        ("BeginWait", pb.BeginWaitRequest(**about, **sleep)),
        ("SubmitSubJobs", pb.SubmitSubJobsRequest(**about, name="n")),
        ("ReadResults", pb.ReadResultsRequest(**about)),
    ):
        answer = await calls.make(name, request)
        assert answer.answer == pb.ANSWER_FENCED, name
    assert factory.conn.execute("select count(*) from laneway.handler_waits").fetchone() == (0,)


@pytest.mark.parametrize(
    "options, field",
    [
        ("{", "jobs[0].options"),
        ("[]", "jobs[0].options"),
        ('{"created_by": "root"}', "jobs[0].options.created_by"),
        ('{"conn": 1}', "jobs[0].options.conn"),
        ('{"after": []}', "jobs[0].options.after"),
        ('{"priority": 101}', "jobs[0].options.priority"),
        ('{"priority": true}', "jobs[0].options.priority"),
        ('{"delay": "soon"}', "jobs[0].options.delay"),
        ('{"delay": -1e999}', "jobs[0].delay"),
        ('{"run_at": "soon"}', "jobs[0].options.run_at"),
        ('{"run_at": "2026-01-01T00:00:00"}', "jobs[0].run_at"),
        ('{"tags": [1]}', "jobs[0].options.tags"),
        ('{"unique_key": ""}', "jobs[0].unique_key"),
        ('{"workspace": "other"}', "workspace"),
    ],
)
async def test_wrong_options_of_sub_jobs_are_refused(
    rpc: RpcHarness, people: People, factory: JobFactory, options: str, field: str
) -> None:
    robot = people.new("robot", "remote_worker", scope="all")
    factory.submit("greet")
    calls = rpc.call(robot)
    stream = await calls.connected()
    (one,) = await assigned(stream, 1)
    request = pb.SubmitSubJobsRequest(
        worker_id=str(calls.worker_id),
        claim=pb.Claim(job_id=one.job_id, attempt=one.attempt),
        name="parts",
        total=1,
        jobs=[pb.SubJob(job_type="part", options=options)],
    )
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await calls.make("SubmitSubJobs", request)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(raised.value.details()).startswith(field), raised.value.details()
    good = json.dumps({"priority": 5, "delay": 3600, "tags": ["a"], "unique_key": "k"})
    request.jobs[0].options = good
    assert (await calls.make("SubmitSubJobs", request)).stored == 1
    assert (await calls.make("SubmitSubJobs", request)).stored == 1
    assert factory.conn.execute(
        "select priority, tags from laneway.jobs where job_type = 'part'"
    ).fetchall() == [(5, ["a"])]


async def test_sub_jobs_count_against_the_grant_of_their_worker(
    far: Far, people: People, conn: psycopg.Connection[Any]
) -> None:
    people.role("narrow", "workers:claim", "workers:declare")
    guest = people.new("guest")
    people.grant(guest.id, "narrow", scope="all", max_queued=2)
    far.token = guest.token

    @far.app.handler("owner", retry=SOON, max_retries=1)
    async def owner(ctx: Context, parts: int) -> int:
        return len(await ctx.run_all("parts", [("part", {"n": n}) for n in range(parts)]))

    await far.hire_remote()
    job = await far.lw.submit("owner", {"parts": 3}, created_by="ada")
    with pytest.raises(JobFailed, match="QuotaExceeded"):
        await job.wait(60)
    found = await job.get()
    assert (found.status, found.retries) == ("failed", 1)
    assert found.error is not None
    assert found.error.message == (
        "max_queued: sub-jobs count for guest, the principal of their worker: its grants allow"
        " 2 waiting jobs (max_queued); with these there would be 3"
    )
    assert far.rows("select 1 from laneway.jobs where job_type = 'part'") == []
    # Nothing was counted either: two have room, and the next two when these have started.
    first = await far.lw.submit("owner", {"parts": 2}, created_by="ada")
    await wait_until(lambda: far.count("waiting"))
    kept = "select jobs::int from laneway.queued_of(%s)"
    assert conn.execute(kept, [guest.id]).fetchone() == (2,)

    @far.app.handler("part")
    async def part(ctx: Context, n: int) -> int:
        return n

    await far.hire_remote()
    assert await first.wait(60) == 2
    conn.execute("update laneway.queue_usage set swept_at = '2020-01-01'")
    assert await (await far.lw.submit("owner", {"parts": 2})).wait(60) == 2


async def test_priority_of_remote_sub_jobs_is_that_of_the_grant(far: Far, people: People) -> None:
    people.role("bounded", "workers:claim", "workers:declare")
    guest = people.new("guest")
    people.grant(guest.id, "bounded", scope="all", max_priority=200)
    far.token = guest.token

    @far.app.handler("part")
    async def part(ctx: Context) -> None:
        pass

    @far.app.handler("owner")
    async def owner(ctx: Context, priority: int) -> None:
        await ctx.run_all("parts", [("part", {}, {"priority": priority})])

    await far.hire_remote()
    allowed = await far.lw.submit("owner", {"priority": 200})
    assert await allowed.wait(60) is None
    refused = await far.lw.submit("owner", {"priority": 201})
    with pytest.raises(JobFailed, match="InvalidInput"):
        await refused.wait(60)
    found = await refused.get()
    assert found.retries == 0
    assert found.error is not None
    assert found.error.message.startswith("jobs[0].options.priority: at most 200 by your grants")


async def test_wrong_argument_in_a_remote_handler_fails_its_job_at_once(far: Far) -> None:
    @far.app.handler("wrong", retry=SOON)
    async def wrong(ctx: Context) -> None:
        await ctx.wait_event("x", timeout="2h")  # type: ignore[arg-type]

    await far.hire_remote()
    found = await far.ended(await far.lw.submit("wrong"))
    assert (found.status, found.attempt) == ("failed", 1)
    assert found.error is not None
    assert found.error.message == "timeout: must be a number of seconds, or a timedelta, not '2h'"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda ctx: ctx.sleep(5), "ctx.sleep: missing a required argument: 'seconds'"),
        (lambda ctx: ctx.sleep("a", 1e12), "seconds: must be at most"),
        (lambda ctx: ctx.step(list), "ctx.step: missing a required argument: 'fn'"),
        (lambda ctx: ctx.run_all("a", ["part"]), "jobs[0]: must be a job, as in mail.job(user=1)"),
    ],
)
async def test_wrong_call_in_a_remote_handler_fails_its_job_at_once(
    far: Far, call: Callable[[Any], Awaitable[object]], message: str
) -> None:
    @far.app.handler("wrong", retry=SOON)
    async def wrong(ctx: Context) -> None:
        await call(ctx)

    await far.hire_remote()
    found = await far.ended(await far.lw.submit("wrong"))
    assert (found.status, found.attempt) == ("failed", 1)
    assert found.error is not None
    assert found.error.message.startswith(message)
