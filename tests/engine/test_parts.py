"""The small parts of a worker: services, warnings, capacity, threads, verdicts, lanes served."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
import time
from typing import Any, ClassVar
from uuid import UUID

import pytest

from laneway import Cancel, Context, Retry, Snooze
from laneway.domain.claim import Claim
from laneway.domain.job import LONGEST_DELAY
from laneway.domain.lane import Lane
from laneway.engine.child import wire as child_wire
from laneway.engine.claim.capacity import Capacity
from laneway.engine.claim.lane_routing import served
from laneway.engine.lease import heartbeat_wire as wire
from laneway.engine.registry import Registry, make_handler
from laneway.engine.run import attempt_outcomes
from laneway.engine.run.attempt import Run
from laneway.engine.run.threads import Threads
from laneway.engine.service import Service, backoff_s
from laneway.errors import (
    ConfigError,
    DatabaseUnavailable,
    LanewayError,
    QuotaExceeded,
    Refused,
    StaleAttempt,
)
from laneway.observability.log_throttle import LogThrottle
from laneway.store.lanes import ControlState
from laneway.store.leases import Assignment
from tests.support.worker_harness import wait_until

# -- services ------------------------------------------------------------------------------------


class Loop(Service):
    name: ClassVar[str] = "loop"
    longest_backoff_s: ClassVar[float] = 0.05

    def __init__(self, delay: float | None = None, error: Exception | None = None) -> None:
        super().__init__(LogThrottle(interval_s=3600.0))
        self.delay = delay
        self.error = error
        self.rounds = 0

    async def run_once(self) -> float | None:
        self.rounds += 1
        if self.error is not None:
            raise self.error
        return self.delay


async def test_service_that_has_nothing_to_do_waits_for_a_wake_up() -> None:
    loop = Loop()
    loop.start()
    await wait_until(lambda: loop.rounds == 1)
    loop.wake()
    await wait_until(lambda: loop.rounds == 2)
    await loop.stop()
    assert loop.rounds == 2


async def test_wake_up_during_a_round_is_not_lost() -> None:
    class Woken(Loop):
        async def run_once(self) -> float | None:
            if self.rounds == 0:
                self.wake()
            return await super().run_once()

    loop = Woken()
    loop.start()
    await wait_until(lambda: loop.rounds == 2)
    await loop.stop()


@pytest.mark.parametrize("error", [DatabaseUnavailable("away"), RuntimeError("a mistake")])
async def test_failing_service_continues_after_a_pause(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loop = Loop(error=error)
    began = time.monotonic()
    loop.start()
    for _ in range(1000):
        loop.wake()
        await asyncio.sleep(0)
    # Each pause is at least half of the longest.
    assert loop.rounds <= 1 + (time.monotonic() - began) / (Loop.longest_backoff_s / 2)
    await wait_until(lambda: loop.rounds > 3)
    loop.error = None
    await wait_until(lambda: any("works again" in r.getMessage() for r in caplog.records))
    await loop.stop()
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1


def test_pause_after_failures_grows_and_is_bounded() -> None:
    for failures, longest_s in [(1, 0.1), (2, 0.2), (3, 0.4), (6, 2.0), (10, 2.0), (5000, 2.0)]:
        assert longest_s / 2 <= backoff_s(failures, 2.0) <= longest_s


async def test_stopped_service_runs_no_further_round() -> None:
    loop = Loop(delay=0)
    loop.start()
    await wait_until(lambda: loop.rounds > 10)
    await loop.stop()
    rounds = loop.rounds
    loop.wake()
    await asyncio.sleep(0.01)
    assert loop.rounds == rounds


async def test_cancelled_service_is_interrupted_in_its_round() -> None:
    class Hanging(Loop):
        async def run_once(self) -> float | None:
            self.rounds += 1
            await asyncio.Event().wait()
            return None

    loop = Hanging()
    loop.start()
    await wait_until(lambda: loop.rounds == 1)
    await asyncio.wait_for(loop.cancel(), 60)


# -- warnings ------------------------------------------------------------------------------------


def test_cause_is_logged_once_per_interval_with_number_suppressed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    warnings = LogThrottle()
    for _ in range(50):
        warnings.warn("claimer", "away")
        warnings.resolved("claimer")
    warnings.warn("poller", "away")
    now += 1.0
    warnings.warn("claimer", "away")
    texts = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert texts == ["claimer: away", "poller: away", "claimer: away (and 49 more times)"]
    assert [r.getMessage() for r in caplog.records].count("claimer: works again") == 1


# -- rooms ---------------------------------------------------------------------------------------


def test_every_lane_can_always_start_one_job() -> None:
    capacity = Capacity({"async": 10, "thread": 4})
    capacity.serve({"a": {"async"}, "b": {"async", "thread"}, "c": {"thread"}})
    assert capacity.free("a", "async") == 9
    capacity.take("a", "async", 9)
    assert capacity.free("a", "async") == 0
    assert capacity.free("b", "async") == 1
    capacity.take("b", "async", 1)
    assert capacity.free("b", "async") == 0
    capacity.release("a", "async")
    assert capacity.free("a", "async") == 1
    assert capacity.free("b", "async") == 1
    assert capacity.free("c", "thread") == 3
    assert capacity.in_use == 9


def test_more_lanes_than_room_still_get_one_job_each() -> None:
    capacity = Capacity({"thread": 2})
    capacity.serve({name: {"thread"} for name in "abcde"})
    for name in "abcde":
        assert capacity.free(name, "thread") == 1
        capacity.take(name, "thread", 1)
        assert capacity.free(name, "thread") == 0


def test_lane_no_longer_served_keeps_its_jobs_and_claims_no_more() -> None:
    capacity = Capacity({"async": 4})
    capacity.serve({"a": {"async"}, "b": {"async"}})
    capacity.take("a", "async", 3)
    capacity.serve({"b": {"async"}})
    assert capacity.free("b", "async") == 1
    for _ in range(3):
        capacity.release("a", "async")
    assert capacity.free("b", "async") == 4


# -- threads -------------------------------------------------------------------------------------


def test_threads_are_used_again_and_end_when_closed() -> None:
    threads, names = Threads(), []
    for _ in range(20):
        done = threading.Event()

        def work(done: threading.Event = done) -> None:
            names.append(threading.current_thread())
            done.set()

        threads.run(work)
        assert done.wait(60)
        # The thread is idle a moment after it says that it is done.
        deadline = time.monotonic() + 60
        while threads.idle == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
    assert len(set(names)) == 1
    threads.close()
    names[0].join(60)
    assert not names[0].is_alive()


def test_as_many_threads_run_as_there_is_work() -> None:
    threads, barrier = Threads(), threading.Barrier(9, timeout=60)

    def meet() -> None:
        barrier.wait()

    for _ in range(8):
        threads.run(meet)
    barrier.wait()
    threads.close()


# -- verdicts ------------------------------------------------------------------------------------


def make_run(**options: Any) -> Run:
    async def fn(ctx: Context) -> None: ...

    assignment = Assignment(Claim(1, UUID(int=1), 1), 0, "job", "{}", None, 0, True)
    return Run(assignment, make_handler("job", fn, **options), "default")


@pytest.mark.parametrize(
    "error, kind, delay",
    [
        (ValueError("no"), "fail", None),
        (Retry("busy"), "fail", None),
        (Retry("busy", after=5), "fail", 5.0),
        (Retry("busy", after=-5), "fail", 0.0),
        (Snooze(7), "snooze", 7.0),
        (Snooze(float("inf")), "snooze", LONGEST_DELAY),
        (Cancel("enough"), "cancel", None),
        (Cancel(7), "fail", None),  # type: ignore[arg-type]
        (SystemExit(3), "fail", None),
    ],
)
def test_every_way_to_raise_has_its_verdict(
    error: BaseException, kind: str, delay: float | None
) -> None:
    verdict = attempt_outcomes.of_error(make_run(), error)
    assert (verdict.kind, verdict.delay_s) == (kind, delay)


def test_error_is_bounded_however_long_its_text_and_trace_are() -> None:
    def dive(depth: int) -> None:
        if depth == 0:
            raise ValueError("x" * 1_000_000)
        dive(depth - 1)

    try:
        dive(500)
    except ValueError as error:
        described = json.loads(attempt_outcomes.describe(error))
    assert len(described["message"]) <= attempt_outcomes.LONGEST_MESSAGE
    assert len(described["traceback"]) <= attempt_outcomes.LONGEST_TRACEBACK + 100
    assert "ValueError" in described["type"]


@pytest.mark.parametrize(
    "reason, kind",
    [("cancel", "cancel"), ("timeout", "fail"), ("shutdown", "release"), ("fenced", None)],
)
def test_every_reason_to_stop_has_its_verdict(reason: Any, kind: str | None) -> None:
    run = make_run(timeout=5)
    run.stop_reason = reason
    verdict = attempt_outcomes.of_stop(run)
    assert (verdict.kind if verdict else None) == kind


# -- lanes served, handlers, wire ------------------------------------------------------------------


def test_handler_runs_in_the_lane_that_lists_its_type_or_default() -> None:
    async def fn(ctx: Context) -> None: ...

    registry = Registry()
    for name in ("a", "b", "c"):
        registry.add(make_handler(name, fn, lane="ignored"))
    lanes = {"default": Lane("default"), "x": Lane("x", ("a",)), "y": Lane("y", ("b", "other"))}
    state = ControlState(1, False, lanes)

    def names(only: frozenset[str] | None) -> dict[str, list[str]]:
        return {k: [h.job_type for h in v] for k, v in served(state, registry, only).items()}

    assert names(None) == {"x": ["a"], "y": ["b"], "default": ["c"]}
    assert names(frozenset({"y", "nowhere"})) == {"y": ["b"]}


@pytest.mark.parametrize(
    "options, rule",
    [
        ({"timeout": 0}, "timeout"),
        ({"isolation": "thread"}, "plain def"),
        ({"isolation": "fiber"}, "isolation"),
        ({"memory_mb": 100}, "process"),
        ({"stale": "never"}, "stale"),
        ({"priority": 1.5}, "priority"),
        ({"max_retries": -1}, "max_retries"),
        ({"lane": "No Such Name"}, "lane"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_option_is_refused_by_name(options: dict[str, Any], rule: str) -> None:
    async def fn(ctx: Context) -> None: ...

    with pytest.raises(ConfigError, match=rule):
        make_handler("job", fn, **options)


def test_job_type_has_one_handler() -> None:
    async def fn(ctx: Context) -> None: ...

    registry = Registry()
    registry.add(make_handler("job", fn))
    with pytest.raises(ConfigError, match="already"):
        registry.add(make_handler("job", fn))


def test_heartbeat_messages_are_decoded_as_encoded() -> None:
    stream = io.BytesIO(
        wire.pack(wire.HOLD, [(1, 2), (3, 4)], 30.0, 0.5)
        + wire.pack(wire.NAMED, [(1, 2), (3, 4)], 5.0, 0.5, [b"a" * 16, b"b" * 16])
        + wire.pack(wire.BEAT)
        + wire.pack(wire.FORGET, [(2**62, 7)])
        + wire.pack(wire.HOLD, [(5, 6)], 2.0)[:-3]
    )
    assert wire.receive(stream) == (wire.HOLD, [(1, 2), (3, 4)], 30.0, 0.5, [])
    named = [b"a" * 16, b"b" * 16]
    assert wire.receive(stream) == (wire.NAMED, [(1, 2), (3, 4)], 5.0, 0.5, named)
    assert wire.receive(stream) == (wire.BEAT, [], 0.0, 0.0, [])
    assert wire.receive(stream) == (wire.FORGET, [(2**62, 7)], 0.0, 0.0, [])
    assert wire.receive(stream) is None


@pytest.mark.parametrize("error", [Refused, StaleAttempt, DatabaseUnavailable, QuotaExceeded])
def test_child_raises_the_error_of_its_process_pool(error: type[LanewayError]) -> None:
    received = child_wire.unpack_error(child_wire.pack_error(error("full")))
    assert (type(received), str(received)) == (error, "full")
