"""A remote worker and a server that does what a test tells it to: losing, refusing, restarting."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from laneway import (
    Analysis,
    Context,
    Lane,
    Laneway,
    Limit,
    RetryPolicy,
    Snooze,
    SyncContext,
    __version__,
)
from laneway.config.settings import Settings
from laneway.domain.approval import Approval
from laneway.domain.duration import DAY_S
from laneway.engine import runtime
from laneway.engine.run.executor import Executor
from laneway.errors import ConfigError, Forbidden, NeedsDatabase, Unauthenticated
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server.handshake import read_handshake
from laneway.rpc.worker import job_stream as intake_module
from laneway.rpc.worker import loop_lag as pulse_module
from laneway.rpc.worker import worker as worker_module
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.job_stream import AssignmentStream
from laneway.rpc.worker.loop_lag import LoopLag
from laneway.rpc.worker.worker import RemoteWorker
from tests.rpc.scripted_server import TOKEN, ScriptedServer, assignment
from tests.support.worker_harness import QUICK, wait_until


class Shop:
    """An application without a database, its remote workers, and their server."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.lw = Laneway(embedded=False, **QUICK)
        self.workers: list[RemoteWorker] = []

    async def start_worker(self, link: Endpoint | None = None, **settings: Any) -> RemoteWorker:
        settings = {**QUICK, **settings}
        worker = RemoteWorker(
            self.lw.handlers,
            Settings.load(embedded=False, **settings),
            link or self.server.link,
            app="tests.rpc.app:lw",
        )
        self.workers.append(worker)
        await worker.start()
        return worker

    async def result(self, one: pb.Assignment) -> pb.Result:
        await wait_until(lambda: one.job_id in self.server.results)
        return self.server.results[one.job_id]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def harness(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    for name in ("LANEWAY_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    harness = Shop(server)
    yield harness
    for worker in harness.workers:
        await worker.stop(0.0)


# -- what it says of itself -----------------------------------------------------------------------


async def test_handshake_has_handlers_and_room_of_worker(
    harness: Shop, server: ScriptedServer
) -> None:
    @harness.lw.handler(
        "ingest",
        lane="far",
        timeout=5,
        limits=["openai"],
        approval=Approval(two_person=True),
        retry=RetryPolicy(base=2),
    )
    async def ingest(ctx: Context, path: str) -> None: ...

    @ingest.analyze
    async def plan(path: str) -> Analysis:
        return Analysis(plan=path)

    @harness.lw.handler("crunch")
    def crunch(ctx: SyncContext) -> None: ...

    worker = await harness.start_worker(concurrency=7, threads=3, children=2)
    handshake = read_handshake(server.handshakes[0], worker.settings.payload_limits)
    assert handshake.worker_id == worker.id
    assert handshake.pid == os.getpid()
    # No child processes: no handler needs one.
    assert (handshake.max_in_flight, handshake.max_async, handshake.max_threads) == (10, 7, 3)
    assert handshake.max_processes == 0
    assert {one.name: one.isolation for one in handshake.types} == {
        "ingest": "async",
        "crunch": "thread",
    }
    published = [one.record.to_columns() for one in handshake.types if one.record is not None]
    # The server decides which application a remote worker belongs to.
    ours = [replace(one, application=None) for one in harness.lw.handlers.records()]
    assert published == [one.to_columns() for one in ours]
    assert server.tokens == {f"Bearer {TOKEN}"}


async def test_worker_without_handlers_is_a_mistake(harness: Shop) -> None:
    with pytest.raises(ConfigError, match=r"no handlers: decorate functions with @lw\.handler"):
        await harness.start_worker()


@pytest.mark.parametrize(
    "code, error", [("UNAUTHENTICATED", Unauthenticated), ("PERMISSION_DENIED", Forbidden)]
)
@pytest.mark.parametrize("call", ["Heartbeat", "StreamJobs"])
async def test_refused_token_ends_the_start_with_the_servers_words(
    harness: Shop, server: ScriptedServer, call: str, code: str, error: type[Exception]
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    loaded: list[object] = []
    harness.lw.on_start(loaded.append)
    server.refusals[call] = grpc.StatusCode[code], "the token was revoked"
    with pytest.raises(error, match="the token was revoked"):
        await harness.start_worker()
    # The token is looked at before anything is loaded.
    assert bool(loaded) == (call == "StreamJobs")


async def test_worker_logs_uncovered_types_once(
    harness: Shop, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    def warnings() -> list[str]:
        return [r.getMessage() for r in caplog.records if "does not cover" in r.getMessage()]

    server.uncovered = ["far", "odd\n"]
    worker = await harness.start_worker()
    worker.job_stream.reopen()
    await wait_until(lambda: len(server.handshakes) == 2)
    await worker.job_stream.registered.wait()
    first = "the token does not cover far, odd : this worker gets no such jobs"
    assert warnings() == [first]
    server.uncovered = ["near"]
    worker.job_stream.reopen()
    await wait_until(lambda: len(warnings()) == 2)
    assert warnings() == [first, "the token does not cover near: this worker gets no such jobs"]


async def test_worker_warns_once_a_day_of_a_token_that_expires(
    harness: Shop, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    def warnings() -> list[str]:
        return [r.getMessage() for r in caplog.records if "expires" in r.getMessage()]

    await harness.start_worker()
    for days in (3, 3, 2):
        server.send_expiry(days * DAY_S)
    await wait_until(lambda: len(warnings()) == 2)
    token, cure = (
        "the token of LANEWAY_TOKEN or --token",
        "create another with `laneway tokens create`",
    )
    assert warnings() == [f"{token} expires in {days} days: {cure}" for days in (3, 2)]


async def test_worker_logs_declarations_that_need_a_database(
    harness: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    harness.lw = Laneway(
        embedded=False, lanes=[Lane("docs", max_slots=20)], limits=[Limit("llm")], **QUICK
    )

    @harness.lw.handler("job", lane="docs")
    async def job(ctx: Context) -> None: ...

    await harness.start_worker()
    assert "a remote worker does not create declared lanes and limits: docs, llm" in caplog.text


async def test_worker_logs_refused_schemas_and_ignored_settings(
    harness: Shop, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    server.ignored = [
        pb.Ignored(job_type="odd", fields=["arguments"], arguments_refused="is too large"),
        pb.Ignored(job_type="set", fields=["arguments", "lane"]),
    ]
    await harness.start_worker()
    assert "refuses the argument schema of odd (is too large): this worker checks" in caplog.text
    assert "are not in force: set: arguments, lane (the token" in caplog.text


# -- how jobs end ---------------------------------------------------------------------------------


async def test_jobs_of_every_isolation_run_and_report(
    harness: Shop, server: ScriptedServer
) -> None:
    from tests.rpc.app import lw

    harness.lw = lw
    await harness.start_worker()
    sent = [assignment(name, {"n": n}) for n, name in enumerate(["loop", "thread", "process"])]
    server.send(*sent)
    for n, one in enumerate(sent):
        assert json.loads((await harness.result(one)).finish.result) == {"n": n, "attempt": 1}


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_finish_and_guard_need_a_database(
    harness: Shop, server: ScriptedServer, isolation: str
) -> None:
    from tests.rpc.app import lw

    harness.lw = lw
    await harness.start_worker()
    one = assignment(f"finish_{isolation}")
    server.send(one)
    assert (await harness.result(one)).fail.error.type == NeedsDatabase.__name__


async def test_submit_in_remote_handler_reports_missing_database(
    harness: Shop, server: ScriptedServer
) -> None:
    @harness.lw.handler("submits")
    async def submits(ctx: Context) -> None:
        await harness.lw.submit("submits")

    await harness.start_worker()
    one = assignment("submits")
    server.send(one)
    error = (await harness.result(one)).fail.error
    assert error.type == NeedsDatabase.__name__
    assert "laneway.http" in error.message


async def test_context_is_that_of_any_worker(harness: Shop, server: ScriptedServer) -> None:
    @harness.lw.handler("all")
    async def all_of_it(ctx: Context) -> Any:
        assert ctx.checkpoint == {"at": 1}
        await ctx.progress(1, 2, "half")
        ctx.log("hello")
        first = await ctx.step("one", lambda: "called again")
        second = await ctx.step("two", lambda: "called")
        async with ctx.limit("openai"):
            await ctx.save({"at": 2})
        return [first, second]

    await harness.start_worker()
    steps = [pb.Step(name="one", result='"before"')]
    one = assignment("all", attempt=2, checkpoint='{"at": 1}', steps=steps)
    server.send(one)
    assert json.loads((await harness.result(one)).finish.result) == ["before", "called"]
    updates = [u for request in server.of(pb.ReportProgressRequest) for u in request.updates]
    assert [s.name for u in updates for s in u.steps] == ["two"]
    assert [n.message for u in updates for n in u.lines] == ["hello"]
    assert [u.checkpoint for u in updates if u.HasField("checkpoint")] == ['{"at":2}']
    assert [u.message for u in updates if u.HasField("message")] == ["half"]
    (acquired,) = server.of(pb.AcquireLimitsRequest)
    (released,) = server.of(pb.ReleaseLimitsRequest)
    assert (dict(acquired.wants), dict(released.keeps)) == ({"openai": 1}, {"openai": 0})


async def test_analysis_is_run_by_its_own_function(harness: Shop, server: ScriptedServer) -> None:
    @harness.lw.handler("careful", approval=True)
    async def careful(ctx: Context, n: int) -> None: ...

    @careful.analyze
    async def plan(n: int) -> Analysis:
        return Analysis(plan=n, cost=1, currency="EUR")

    await harness.start_worker()
    one = assignment("careful", {"n": 3}, is_analysis=True)
    server.send(one)
    assert json.loads((await harness.result(one)).finish.result)["plan"] == 3


async def test_timeout_of_the_server_holds_where_the_handler_has_none(
    harness: Shop, server: ScriptedServer
) -> None:
    @harness.lw.handler("slow")
    async def slow(ctx: Context) -> None:
        await asyncio.Event().wait()

    await harness.start_worker()
    one = assignment("slow", timeout_ms=50)
    server.send(one)
    error = (await harness.result(one)).fail.error
    assert (error.type, error.message) == ("Timeout", "took longer than its timeout of 0.05 s")


async def test_late_or_unhandled_job_is_not_run(harness: Shop, server: ScriptedServer) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    await harness.start_worker()
    late, strange = assignment("job", lease_left_ms=0), assignment("strange")
    server.send(late, strange)
    assert (await harness.result(late)).WhichOneof("outcome") == "release"
    assert (await harness.result(strange)).fail.error.type == "UnknownJobType"


async def test_job_that_has_waited_for_a_loop_that_stood_still_is_not_run_too_late(
    harness: Shop, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    @harness.lw.handler("job")
    async def job(ctx: Context, name: str) -> None:
        ran.append(name)

    await harness.start_worker()
    # As after SIGSTOP: by its own clock the process finds that it has stood still for five seconds.
    monkeypatch.setattr(pulse_module, "AFTER_S", 3600.0)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 5.0)
    monkeypatch.setattr(pulse_module, "time", later)
    late = assignment("job", {"name": "late"}, lease_ms=5_000, lease_left_ms=4_000)
    good = assignment("job", {"name": "good"}, lease_ms=60_000, lease_left_ms=59_000)
    server.send(late, good)
    assert (await harness.result(late)).WhichOneof("outcome") == "release"
    assert (await harness.result(good)).WhichOneof("outcome") == "finish"
    assert ran == ["good"]


async def test_late_job_is_released_and_next_is_not_late(
    harness: Shop, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    monkeypatch.setattr(LoopLag, "waited_s", 31.0)
    one, other = assignment("job"), assignment("job")
    monkeypatch.setattr(worker_module, "AFTER_S", 0.05)
    server.send(one)
    assert (await harness.result(one)).WhichOneof("outcome") == "release"
    monkeypatch.setattr(worker_module, "AFTER_S", 600.0)
    server.send(other)
    await wait_until(
        lambda: other.job_id in {claim.job_id for claim in worker.attempt_store.holds()}
    )
    # Otherwise it would be sent again at once, for as long as the standstill is remembered.
    assert not worker.completer.backlog
    await worker.stop(5.0)
    assert (await harness.result(other)).WhichOneof("outcome") == "release"


async def test_stream_requests_heartbeat_that_reports_cancel(
    harness: Shop, server: ScriptedServer
) -> None:
    begun = asyncio.Event()

    @harness.lw.handler("long")
    async def long(ctx: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    await harness.start_worker()
    one = assignment("long")
    server.send(one)
    await begun.wait()
    server.answer = lambda claim: pb.ANSWER_CANCEL_REQUESTED
    server.send(beat=True)
    assert (await harness.result(one)).WhichOneof("outcome") == "cancel"


async def test_fenced_job_is_stopped_and_only_logged(
    harness: Shop, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @harness.lw.handler("long")
    async def long(ctx: Context) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @harness.lw.handler("short")
    async def short(ctx: Context) -> None: ...

    await harness.start_worker()
    taken = assignment("long")
    server.send(taken)
    await begun.wait()
    server.answer = lambda claim: pb.ANSWER_FENCED
    server.send(beat=True)
    await stopped.wait()
    server.answer = lambda claim: pb.ANSWER_ACCEPTED
    one = assignment("short")
    server.send(one)
    await harness.result(one)
    assert list(server.results) == [one.job_id]
    assert [r.getMessage() for r in caplog.records if "attempt" in r.msg] == [
        f"long {taken.job_id}: attempt 1 was taken away: the job was reclaimed or has ended"
    ]


# -- streams that end -----------------------------------------------------------------------------


async def test_worker_continues_running_jobs_without_server(
    harness: Shop, server: ScriptedServer
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @harness.lw.handler("long")
    async def long(ctx: Context) -> str:
        begun.set()
        await go_on.wait()
        return "done"

    @harness.lw.handler("short")
    async def short(ctx: Context) -> str:
        return "done"

    worker = await harness.start_worker()
    first, second = assignment("long"), assignment("short")
    server.send(first)
    await begun.wait()
    server.refusals["ReportResult"] = grpc.StatusCode.UNAVAILABLE, "the database is away"
    server.send(second)
    await wait_until(lambda: worker.completer.backlog)
    await server.stop()
    go_on.set()
    await wait_until(lambda: worker.completer.backlog == 2)
    server.refusals.clear()
    await server.start()
    for one in (first, second):
        assert (await harness.result(one)).finish.result == '"done"'
    await wait_until(lambda: len(server.handshakes) == 2)
    held = {one.job_id for one in server.handshakes[1].holds}
    # Whatever had not been answered by then.
    assert held <= {first.job_id, second.job_id}


async def test_reconnect_handshake_lists_held_jobs(harness: Shop, server: ScriptedServer) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @harness.lw.handler("long")
    async def long(ctx: Context) -> None:
        begun.set()
        await go_on.wait()

    worker = await harness.start_worker()
    one = assignment("long", attempt=4)
    server.send(one)
    await begun.wait()
    server.end_stream()
    await wait_until(lambda: len(server.handshakes) == 2)
    again = server.handshakes[1]
    assert again.worker_id == str(worker.id)
    assert [(held.job_id, held.attempt) for held in again.holds] == [(one.job_id, 4)]
    go_on.set()
    await harness.result(one)
    server.end_stream()
    await wait_until(lambda: len(server.handshakes) == 3)
    assert not server.handshakes[2].holds


async def test_abandoned_handler_uses_room_until_it_returns(
    harness: Shop, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LEFT_S", 0.01)
    go_on = threading.Event()

    @harness.lw.handler("stuck", timeout=0.01)
    def stuck(ctx: SyncContext) -> None:
        go_on.wait(120)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    await harness.start_worker(concurrency=5, threads=1, cancel_grace=0.01)
    one = assignment("stuck")
    server.send(one)
    assert (await harness.result(one)).fail.error.type == "Timeout"
    await wait_until(lambda: len(server.handshakes) == 2)
    full = server.handshakes[1]
    # 0 threads would be no bound, so nothing that runs in one is asked for.
    assert [one.name for one in full.job_types] == ["job"]
    assert (full.max_in_flight, full.max_threads) == (5, 0)
    go_on.set()
    await wait_until(lambda: len(server.handshakes) == 3)
    again = server.handshakes[2]
    assert {one.name for one in again.job_types} == {"job", "stuck"}
    assert (again.max_in_flight, again.max_threads) == (6, 1)


async def test_type_whose_plans_are_made_in_threads_is_not_named_while_none_is_free(
    harness: Shop, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("heavy", approval=True, isolation="process")
    def heavy(ctx: SyncContext) -> None: ...

    @heavy.analyze
    def plan() -> Analysis:
        return Analysis()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await harness.start_worker(threads=1)
    monkeypatch.setattr(Executor, "abandoned", Counter({"thread": 1}))
    worker.job_stream.reopen()
    await wait_until(lambda: len(server.handshakes) == 2)
    assert [one.name for one in server.handshakes[0].job_types] == ["heavy", "job"]
    assert [one.name for one in server.handshakes[1].job_types] == ["job"]


async def test_attempt_lost_by_workers_clock_is_held_until_watchdog(
    harness: Shop, server: ScriptedServer
) -> None:
    begun = asyncio.Event()

    @harness.lw.handler("long")
    async def long(ctx: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = await harness.start_worker()
    server.refusals["Heartbeat"] = grpc.StatusCode.UNAVAILABLE, "no"
    one = assignment("long", lease_ms=2000, lease_left_ms=300)
    server.send(one)
    await begun.wait()
    await wait_until(lambda: not worker.executor.active)
    # Given back as if it had never come it would not be charged; nor if one handshake got lost.
    for n in (1, 2):
        server.end_stream()
        await wait_until(lambda n=n: len(server.handshakes) > n)  # type: ignore[misc]
        assert [held.job_id for held in server.handshakes[n].holds] == [one.job_id]


async def test_next_address_is_tried_when_one_does_not_answer(
    harness: Shop, server: ScriptedServer
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    async with ScriptedServer() as other:
        both = Endpoint.to(f"{other.address},{server.address}", TOKEN)
        await harness.start_worker(both)
        assert (len(other.handshakes), len(server.handshakes)) == (1, 0)
        await other.stop()
        await wait_until(lambda: server.handshakes)
        one = assignment("job")
        server.send(one)
        await harness.result(one)
        await other.start()


async def test_token_that_is_refused_later_is_complained_about_and_may_be_renewed(
    harness: Shop,
    server: ScriptedServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AssignmentStream, "longest_backoff_s", 0.1)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    file = tmp_path / "token"
    file.write_text(TOKEN)
    await harness.start_worker(Endpoint.to(server.address, token_file=str(file)))
    server.refusals["StreamJobs"] = grpc.StatusCode.UNAUTHENTICATED, "the token has expired"
    with caplog.at_level(logging.WARNING, "laneway"):
        server.end_stream()
        await wait_until(lambda: "the token has expired" in caplog.text)
    file.write_text("lw_newer")
    await wait_until(lambda: "Bearer lw_newer" in server.tokens)
    server.refusals.clear()
    await wait_until(lambda: len(server.handshakes) == 2)


async def test_stream_works_again_when_a_server_greets_and_not_when_it_ends(
    harness: Shop,
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AssignmentStream, "longest_backoff_s", 0.1)
    monkeypatch.setattr(intake_module, "LASTING_S", 0.0)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    def logged(text: str) -> int:
        return [text in one.getMessage() for one in caplog.records].count(True)

    monkeypatch.setattr(runtime, "LogThrottle", partial(LogThrottle, 0.0))
    await harness.start_worker()

    async def fail_and_recover(times: int) -> None:
        server.refusals["StreamJobs"] = grpc.StatusCode.UNAUTHENTICATED, f"refused {times}"
        server.end_stream()
        await wait_until(lambda: logged(f"refused {times}") > 0)
        assert logged("stream: works again") == times - 1
        server.refusals.clear()
        await wait_until(lambda: len(server.handshakes) == times + 1)
        await wait_until(lambda: logged("stream: works again") == times)

    with caplog.at_level(logging.INFO, "laneway"):
        await fail_and_recover(1)
        await fail_and_recover(2)


# -- log lines ----------------------------------------------------------------------------------


async def test_remote_worker_logs_its_start_and_each_end(
    harness: Shop, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    worker = await harness.start_worker(concurrency=7)
    assert (
        f"remote worker {worker.name} receives jobs from {server.address}: laneway {__version__},"
        " 1 job type, concurrency 7 (greet)" in caplog.messages
    )
    sent = assignment("greet")
    server.send(sent)
    start = f"greet {sent.job_id}: attempt {sent.attempt} completed in "
    await wait_until(lambda: any(text.startswith(start) for text in caplog.messages))


# -- the end ------------------------------------------------------------------------------------


async def test_stopping_worker_takes_no_jobs_finishes_and_releases(
    harness: Shop, server: ScriptedServer
) -> None:
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    @harness.lw.handler("long")
    async def long(ctx: Context, wait: bool) -> None:
        begun.release()
        await (asyncio.Event() if wait else go_on).wait()

    freed: list[object] = []
    harness.lw.on_stop(freed.append)
    worker = await harness.start_worker()
    ends, stays = assignment("long", {"wait": False}), assignment("long", {"wait": True})
    server.send(ends, stays)
    await begun.acquire()
    await begun.acquire()
    hurry = asyncio.Event()
    stopping = asyncio.ensure_future(worker.stop(60.0, hurry))
    await wait_until(lambda: len(server.handshakes) == 2)
    handshake = server.handshakes[1]
    # A stream that takes no more: what is not held was lost on the way and is given back.
    assert handshake.max_in_flight == 0
    assert {one.job_id for one in handshake.holds} == {ends.job_id, stays.job_id}
    crossed = assignment("long", {"wait": True})
    server.send(crossed)
    assert (await harness.result(crossed)).WhichOneof("outcome") == "release"
    go_on.set()
    assert (await harness.result(ends)).WhichOneof("outcome") == "finish"
    hurry.set()
    await stopping
    assert (await harness.result(stays)).WhichOneof("outcome") == "release"
    assert freed


async def test_results_are_sent_when_server_returns_late_in_grace(
    harness: Shop, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.rpc.worker.worker.STOP_S", 0.01)
    monkeypatch.setattr("laneway.engine.runtime.STOP_S", 0.01)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    server.refusals["ReportResult"] = grpc.StatusCode.UNAVAILABLE, "restarting"
    one = assignment("job")
    server.send(one)
    await wait_until(lambda: worker.completer.backlog)
    stopping = asyncio.ensure_future(worker.stop(60.0))
    # It has drained, and the least time for the last words is over.
    await wait_until(lambda: len(server.handshakes) == 2)
    refused = server.refused["ReportResult"]
    await wait_until(lambda: server.refused["ReportResult"] >= refused + 2)
    server.refusals.clear()
    await stopping
    assert (await harness.result(one)).WhichOneof("outcome") == "finish"


async def test_attempt_reported_as_over_is_not_renewed(
    harness: Shop, server: ScriptedServer
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await ctx.progress(1, 2)
        await asyncio.Event().wait()

    worker = await harness.start_worker()
    server.answer = lambda claim: pb.ANSWER_FENCED
    one = assignment("job")
    server.send(one)
    await wait_until(lambda: server.of(pb.ReportProgressRequest))
    await wait_until(lambda: not worker.executor.active)
    assert not server.results
    assert not worker.attempt_store.holds()
    assert worker.heartbeat.held == 0


async def test_snoozed_job_names_its_delay(harness: Shop, server: ScriptedServer) -> None:
    @harness.lw.handler("later")
    async def later(ctx: Context) -> None:
        raise Snooze(2.5)

    await harness.start_worker()
    one = assignment("later")
    server.send(one)
    assert (await harness.result(one)).snooze.delay_ms == 2500


@pytest.mark.parametrize("first, is_late", [("grpc", True), ("laneway.rpc", False)])
def test_grpc_imported_before_fork_handlers_are_off_is_detected(first: str, is_late: bool) -> None:
    kept = {k: v for k, v in os.environ.items() if k != "GRPC_ENABLE_FORK_SUPPORT"}
    program = f"import {first}, grpc, laneway.rpc; print(laneway.rpc.IS_LATE)"
    done = subprocess.run([sys.executable, "-c", program], env=kept, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{is_late}\n", "")
