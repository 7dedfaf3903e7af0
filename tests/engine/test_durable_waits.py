"""Waits of handlers: the job leaves its worker, and the handler meets its waits done."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from laneway import Context, Snooze, SyncContext
from laneway.domain.handler_signals import Suspended
from laneway.domain.wait import JobResult
from laneway.errors import InvalidInput, JobFailed, NondeterministicHandler, SubJobsFailed
from tests.engine import waiting_handlers
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

LONG = 86_400.0


def send(harness: WorkerHarness, name: str, key: str = "", payload: str = "null") -> None:
    harness.do("select laneway.send_event(%s, %s, %s::jsonb, wake => true)", name, key, payload)


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_handler_sleeps_without_worker_and_continues(
    harness: WorkerHarness, isolation: str
) -> None:
    ran: list[int] = []

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> str:
        ran.append(ctx.attempt)
        await ctx.sleep("night", 0.05)
        return "awake"

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> str:
        ran.append(ctx.attempt)
        ctx.sleep("night", 0.05)
        return "awake"

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    assert await job.wait(60) == "awake"
    assert ran == [1, 2]
    found = await job.get()
    assert [one.outcome for one in found.attempts][:1] == ["waited"]
    assert found.retries == 0


async def test_sleeping_job_holds_nothing(harness: WorkerHarness) -> None:
    harness.do(
        "insert into laneway.limits (name, max_concurrent) values ('gpu', 1)"
        " on conflict (name) do update set max_concurrent = 1"
    )

    @harness.lw.handler("sleeper", limits=["gpu"])
    async def sleeper(ctx: Context) -> None:
        await ctx.sleep("long", LONG)

    await harness.start_worker()
    job = await harness.lw.submit("sleeper", concurrency_key="one")
    await wait_until(lambda: harness.status(job) == "waiting" and harness.holds_nothing())
    assert harness.one("select count(*) from laneway.key_holders") == 0
    assert harness.one("select coalesce(sum(running), 0) from laneway.limit_usage") == 0


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_sub_jobs_run_and_their_results_return_in_order(
    harness: WorkerHarness, isolation: str
) -> None:
    ran: Counter[int] = Counter()

    @harness.lw.handler("part")
    async def part(ctx: Context, n: int) -> int:
        ran[n] += 1
        return n * n

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> list[int]:
        return await ctx.run_all("parts", [part.job(n=n) for n in range(20)])

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> list[int]:
        return ctx.run_all("parts", [part.job(n=n) for n in range(20)])

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job", workspace="acme", created_by="ada")
    assert await job.wait(60) == [n * n for n in range(20)]
    assert ran == Counter(range(20))
    assert harness.rows(
        "select distinct j.workspace, j.created_by, o.id = %s from laneway.links l"
        " join laneway.jobs j on j.seq = l.seq join laneway.jobs o on o.seq = l.owner",
        job.id,
    ) == [("acme", "ada", True)]
    assert harness.one("select count(*) from laneway.open_edges") == 0


@pytest.mark.parametrize("job_type", ["child_waits", "async_child_waits"])
async def test_waits_work_in_child_processes(
    harness: WorkerHarness, tmp_path: Path, job_type: str
) -> None:
    path = str(tmp_path / "ran")
    for handler in waiting_handlers.lw.handlers:
        harness.lw.handlers.add(handler)
    await harness.start_worker()
    job = await harness.lw.submit(job_type, {"path": path})
    await wait_until(lambda: harness.rows("select 1 from laneway.waiting where reason = 'event'"))
    send(harness, "reviewed", path, '{"by": "ada"}')
    assert await job.wait(60) == {"parts": [0, 1, 4], "decision": {"by": "ada"}}
    lines = (tmp_path / "ran").read_text().split("\n")
    assert lines.count("step") == 1
    assert lines.count("run 1") == 1


async def test_parent_in_full_lane_of_its_sub_jobs_completes(harness: WorkerHarness) -> None:
    harness.lane("narrow", max_slots=1, poll_interval_ms=100)

    @harness.lw.handler("part", lane="narrow")
    async def part(ctx: Context, n: int) -> int:
        return n

    @harness.lw.handler("whole", lane="narrow")
    async def whole(ctx: Context) -> int:
        return sum(await ctx.run_all("parts", [part.job(n=n) for n in range(5)]))

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == 10


async def test_failed_sub_job_fails_its_job_without_retry(harness: WorkerHarness) -> None:
    attempts: list[int] = []

    @harness.lw.handler("part", max_retries=0)
    async def part(ctx: Context, n: int) -> int:
        if n == 1:
            raise ValueError("no")
        return n

    @harness.lw.handler("whole", retry=SOON)
    async def whole(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        await ctx.run_all("parts", [part.job(n=n) for n in range(3)])

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    with pytest.raises(JobFailed):
        await job.wait(60)
    found = await job.get()
    failed = harness.one(
        "select j.id from laneway.outcome o join laneway.jobs j on j.seq = o.seq"
        " where o.status = 'failed' and o.job_type = 'part'"
    )
    assert found.error is not None
    assert found.error.type == "SubJobsFailed"
    assert f"1 of 3 sub-jobs of 'parts' did not complete: {failed} (failed)" in found.error.message
    assert attempts == [1, 2]


async def test_wait_for_sub_jobs_ends_with_the_last_one(harness: WorkerHarness) -> None:
    go_on = asyncio.Event()

    @harness.lw.handler("part", max_retries=0)
    async def part(ctx: Context, n: int) -> int:
        if ctx.attempt == 1:
            raise ValueError("no")
        await go_on.wait()
        return n

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> None:
        await ctx.run_all("parts", [part.job(n=1)])

    def ends() -> dict[str, Any]:
        found = "select name, ended_at from laneway.asked_waits(%s, 10)"
        return dict(harness.rows(found, job.id))

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    with pytest.raises(JobFailed):
        await job.wait(60)
    first = ends()
    assert first["parts"] is not None
    await harness.lw.jobs.retry(job.id, by="ann")
    # Open again, until the retried one has ended.
    assert ends()["parts"] is None
    go_on.set()
    await job.wait(60)
    assert ends()["parts"] > first["parts"]


async def test_failures_can_be_returned(harness: WorkerHarness) -> None:
    @harness.lw.handler("part", max_retries=0)
    async def part(ctx: Context, n: int) -> int:
        if n == 1:
            raise ValueError("no")
        return n

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> list[Any]:
        found = await ctx.run_all("parts", [part.job(n=n) for n in range(3)], failures="return")
        assert all(isinstance(one, JobResult) for one in found)
        return [[one.job_type, one.status, one.result] for one in found]

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == [
        ["part", "completed", 0],
        ["part", "failed", None],
        ["part", "completed", 2],
    ]


async def test_no_sub_jobs_need_no_wait(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> list[Any]:
        return await ctx.run_all("nothing", [])

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == []
    assert (await job.get()).attempt == 1


async def test_wait_may_follow_a_call_without_sub_jobs(harness: WorkerHarness) -> None:
    @harness.lw.handler("part")
    async def part(ctx: Context, n: int) -> int:
        return n

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> list[Any]:
        none: list[int] = await ctx.run_all("nothing", [])
        return [*none, *await ctx.run_all("parts", [part.job(n=1)])]

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == [1]


async def test_steps_and_sub_jobs_are_not_repeated_after_failures(
    harness: WorkerHarness,
) -> None:
    ran: list[str] = []

    @harness.lw.handler("part")
    async def part(ctx: Context, n: int) -> int:
        ran.append(f"part {n}")
        return n

    def list_files() -> list[int]:
        ran.append("list")
        return [1, 2]

    @harness.lw.handler("whole", retry=SOON)
    async def whole(ctx: Context) -> int:
        files = await ctx.step("list", list_files)
        parts = await ctx.run_all("parts", [part.job(n=n) for n in files])
        await ctx.sleep("short", 0.01)
        if "failed" not in ran:
            ran.append("failed")
            raise ValueError("after the waits")
        return sum(parts)

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == 3
    assert sorted(ran) == ["failed", "list", "part 1", "part 2"]
    assert (await job.get()).retries == 1


@pytest.mark.parametrize("how", ["exception", "group", "swallowed", "bare"])
async def test_suspension_survives_the_handlers_own_except(
    harness: WorkerHarness, how: str
) -> None:
    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> str:
        if how == "exception":
            try:
                await ctx.sleep("night", 0.01)
            except Exception:
                return "caught"
        elif how == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.sleep("night", 0.01))
        elif how == "swallowed":
            await asyncio.gather(ctx.sleep("night", 0.01), return_exceptions=True)
        else:
            try:
                await ctx.sleep("night", 0.01)
            except BaseException:
                return "swallowed"
        return "awake"

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == "awake"
    assert (await job.get()).attempt == 2


async def test_error_beside_a_suspension_fails_the_attempt(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole", max_retries=0)
    async def whole(ctx: Context) -> None:
        try:
            await ctx.sleep("night", LONG)
        finally:
            raise ValueError("cleanup failed")

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    found = await harness.ended(job)
    assert found.status == "failed"
    assert found.error is not None
    assert found.error.type == "ValueError"


async def test_middleware_sees_suspension_as_neither_success_nor_failure(
    harness: WorkerHarness,
) -> None:
    seen: list[str] = []

    @harness.lw.middleware
    async def watch(ctx: Context, call_next: Any) -> Any:
        try:
            result = await call_next()
        except Exception:
            seen.append("failure")
            raise
        except Suspended:
            seen.append("suspended")
            return None
        seen.append("success")
        return result

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> str:
        await ctx.sleep("night", 0.01)
        return "awake"

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == "awake"
    assert seen == ["suspended", "success"]


async def test_other_name_in_second_run_fails_at_once(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole", retry=SOON)
    async def whole(ctx: Context) -> None:
        await ctx.sleep(f"run {ctx.attempt}", 0.01)

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    found = await harness.ended(job)
    assert (found.status, found.attempt) == ("failed", 2)
    assert found.error is not None
    assert found.error.type == NondeterministicHandler.__name__
    assert "'run 2'" in found.error.message
    assert "'run 1'" in found.error.message


async def test_other_kind_or_count_under_a_name_fails_at_once(harness: WorkerHarness) -> None:
    @harness.lw.handler("part")
    async def part(ctx: Context, n: int) -> int:
        return n

    @harness.lw.handler("kind")
    async def kind(ctx: Context) -> None:
        if ctx.attempt == 1:
            await ctx.sleep("x", 0.01)
        await ctx.run_all("x", [part.job(n=1)])

    @harness.lw.handler("count")
    async def count(ctx: Context) -> None:
        await ctx.run_all("x", [part.job(n=1)] * ctx.attempt)

    await harness.start_worker()
    first, second = await harness.lw.submit("kind"), await harness.lw.submit("count")
    for job, text in ((first, "earlier run asked for a sleep"), (second, "for 1 sub-jobs")):
        found = await harness.ended(job)
        assert found.error is not None
        assert found.error.type == NondeterministicHandler.__name__
        assert text in found.error.message


async def test_steps_and_waits_share_one_namespace(harness: WorkerHarness) -> None:
    problems: list[str] = []

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> None:
        await ctx.step("x", lambda: 1)
        try:
            await ctx.sleep("x", 0.01)
        except InvalidInput as error:
            problems.append(str(error))
        await ctx.sleep("y", 0.0)
        with pytest.raises(InvalidInput, match="unique in a job"):
            await ctx.step("y", lambda: 1)

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    await job.wait(60)
    assert "names of steps and waits are unique in a job" in problems[0]


async def test_sub_job_cannot_come_after_other_jobs(harness: WorkerHarness) -> None:
    problems: list[str] = []

    @harness.lw.handler("part")
    async def part(ctx: Context) -> int:
        return 1

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> list[int]:
        for wrong in (
            part.options(after=[ctx.job_id]).job(),
            part.options(after_failure="run").job(),
        ):
            with pytest.raises(InvalidInput) as raised:
                await ctx.run_all("wrong", [wrong])
            problems.append(raised.value.field)
        return await ctx.run_all("parts", [part.options(after=[]).job()])

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == [1]
    assert problems == ["jobs[0].after", "jobs[0].after_failure"] * 2


async def test_cancel_of_sleeping_job_ends_it(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> None:
        await ctx.sleep("night", LONG)

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    await wait_until(lambda: harness.status(job) == "waiting")
    await job.cancel()
    assert (await harness.ended(job)).status == "cancelled"
    assert harness.one("select count(*) from laneway.waiting") == 0


async def test_cancel_requested_before_the_wait_cancels(harness: WorkerHarness) -> None:
    go = asyncio.Event()

    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> None:
        await go.wait()
        try:
            await ctx.run_all("parts", [("whole", {})])
        except asyncio.CancelledError:
            raise Snooze(0) from None

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    await harness.running(job)
    harness.do(
        "update laneway.lease set cancel_requested_at = clock_timestamp() where seq = %s",
        harness.seq(job),
    )
    go.set()
    assert (await harness.ended(job)).status == "cancelled"
    assert harness.one("select count(*) from laneway.jobs") == 1


async def test_event_reaches_waiting_handler(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole")
    async def whole(ctx: Context, folder: str) -> Any:
        return await ctx.wait_event("reviewed", key=folder)

    await harness.start_worker()
    job = await harness.lw.submit("whole", {"folder": "a"})
    other = await harness.lw.submit("whole", {"folder": "b"})
    await wait_until(lambda: harness.count("waiting") == 2)
    send(harness, "reviewed", "a", '{"by": "ada"}')
    assert await job.wait(60) == {"by": "ada"}
    assert harness.status(other) == "waiting"


async def test_event_sent_before_the_wait_is_taken_at_once(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole")
    async def whole(ctx: Context) -> list[Any]:
        return [await ctx.wait_event("message"), await ctx.wait_event("message")]

    send(harness, "message", payload="1")
    send(harness, "message", payload="2")
    await harness.start_worker()
    job = await harness.lw.submit("whole")
    assert await job.wait(60) == [1, 2]
    assert (await job.get()).attempt == 1


async def test_event_that_does_not_come_raises_timeout_error(harness: WorkerHarness) -> None:
    @harness.lw.handler("whole", retry=SOON)
    async def whole(ctx: Context, catches: bool) -> str:
        try:
            await ctx.wait_event("reviewed", timeout=0.05)
        except TimeoutError:
            if not catches:
                raise
            return "late"
        return "in time"

    await harness.start_worker()
    job = await harness.lw.submit("whole", {"catches": True})
    assert await job.wait(60) == "late"
    failing = await harness.lw.submit("whole", {"catches": False})
    found = await harness.ended(failing)
    assert (found.status, found.attempt) == ("failed", 2)
    assert found.error is not None
    assert found.error.message == "event 'reviewed' did not come within 0.05 s"


async def test_killed_worker_between_submit_and_wait_repeats_no_sub_job(
    harness: WorkerHarness, tmp_path: Path
) -> None:
    path = tmp_path / "killed"
    app = "tests.engine.waiting_handlers:lw"
    harness.lane("default", lease_seconds=2)
    job = await harness.lw.submit("killed_between", {"path": str(path)})
    with WorkerCommand(harness.dsn, app=app):
        pid = int(await wait_until(lambda: path.exists() and path.read_text()))
        os.kill(pid, signal.SIGKILL)
        assert harness.one("select count(*) from laneway.jobs where job_type = 'part'") == 20
    with WorkerCommand(harness.dsn, app=app):
        assert await job.wait(120) == [n * n for n in range(20)]
    assert harness.one("select count(*) from laneway.jobs where job_type = 'part'") == 20


async def test_superseded_attempt_submits_no_sub_jobs(harness: WorkerHarness) -> None:
    go = asyncio.Event()
    refused: list[BaseException] = []

    @harness.lw.handler("whole", retry=SOON)
    async def whole(ctx: Context) -> str:
        if ctx.attempt == 1:
            await asyncio.shield(go.wait())
            try:
                await ctx.run_all("parts", [("whole", {})])
            except BaseException as error:
                refused.append(error)
                raise
        return "second"

    await harness.start_worker()
    job = await harness.lw.submit("whole")
    await harness.running(job)
    harness.do("delete from laneway.lease where seq = %s", harness.seq(job))
    go.set()
    await wait_until(lambda: refused)
    assert not isinstance(refused[0], (Suspended, SubJobsFailed))
    assert harness.one("select count(*) from laneway.handler_waits") == 0
    assert harness.one("select count(*) from laneway.jobs") == 1


# Each wrong argument, and what the error of its job says.
WRONG_CALLS: dict[str, str] = {
    "timeout": "timeout: must be a number of seconds, or a timedelta, not '2h'",
    "seconds": "seconds: must be a number of seconds, or a timedelta, not 'soon'",
    "name": "name: ",
    "event": "event: ",
    "key": "key: ",
    "jobs": "jobs: must be a list of jobs",
    "failures": "failures: must be 'raise' or 'return'",
    "step": "step: must be text, not int",
    "done": "done: must be a number",
    "submit": "payload",
    "snooze": "seconds: must be a number of seconds, not 'a while'",
}


async def call_wrongly(ctx: Context, harness: WorkerHarness, argument: str) -> None:
    given = {"timeout": "2h", "seconds": "soon", "snooze": "a while", "submit": {"n": math.nan}}
    wrong: Any = given.get(argument, 7)
    match argument:
        case "timeout":
            await ctx.wait_event("x", timeout=wrong)
        case "seconds":
            await ctx.sleep("a", wrong)
        case "name":
            await ctx.sleep(wrong, 1)
        case "event":
            await ctx.wait_event(wrong)
        case "key":
            await ctx.wait_event("x", key=wrong)
        case "jobs":
            await ctx.run_all("parts", "page")  # type: ignore[arg-type]
        case "failures":
            await ctx.run_all("parts", [], failures=wrong)
        case "step":
            await ctx.step(wrong, list)
        case "done":
            await ctx.progress("half")  # type: ignore[arg-type]
        case "submit":
            await harness.lw.submit("other", wrong)
        case _:
            raise Snooze(wrong)


@pytest.mark.parametrize("argument", WRONG_CALLS)
async def test_wrong_argument_in_a_handler_fails_its_job_at_once(
    harness: WorkerHarness, argument: str
) -> None:
    @harness.lw.handler("wrong", retry=SOON)
    async def wrong(ctx: Context) -> None:
        await call_wrongly(ctx, harness, argument)

    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("wrong"))
    assert (found.status, found.attempt) == ("failed", 1)
    assert found.error is not None
    assert found.error.type == "InvalidInput"
    assert WRONG_CALLS[argument] in found.error.message


async def test_wrong_argument_is_not_for_the_retry_function(harness: WorkerHarness) -> None:
    @harness.lw.handler("wrong", retry=lambda n, error: 0.01)
    async def wrong(ctx: Context) -> None:
        await ctx.sleep("a", "soon")  # type: ignore[arg-type]

    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("wrong"))
    assert (found.status, found.attempt) == ("failed", 1)


async def test_wrong_argument_in_a_task_group_fails_its_job_at_once(harness: WorkerHarness) -> None:
    @harness.lw.handler("wrong", retry=SOON)
    async def wrong(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sleep("a", "soon"))  # type: ignore[arg-type]

    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("wrong"))
    assert (found.status, found.attempt) == ("failed", 1)


@pytest.mark.parametrize("place", ["child", "database"])
async def test_wrong_argument_in_an_isolated_handler_fails_its_job_at_once(
    harness: WorkerHarness, place: str
) -> None:
    for handler in waiting_handlers.lw.handlers:
        harness.lw.handlers.add(handler)
    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("child_wrong", {"place": place}))
    assert (found.status, found.attempt) == ("failed", 1)
    assert found.error is not None
    assert found.error.type == "InvalidInput"
