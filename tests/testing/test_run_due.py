"""`run_due` runs what is due to its end, in this process, and reports or raises what happened."""

from __future__ import annotations

import os
import threading
from collections import Counter

import pytest

from laneway import Laneway
from laneway.errors import InvalidInput, LanewayError, WaitTimeout
from laneway.testing import (
    AttemptFailed,
    StillRunning,
    TooManyAttempts,
    clock,
    fail_next,
    run_due,
    run_due_async,
    submitted,
)
from tests.testing.library_app import (
    again,
    bind_book,
    calls,
    collect,
    shelve,
)


def test_due_jobs_run_in_order_of_priority_in_this_process(laneway_app: Laneway) -> None:
    for title, priority in (("low", 0), ("high", 5), ("also low", 0)):
        laneway_app.sync.submit("shelve", {"title": title}, priority=priority)
    report = run_due()
    assert [call[1] for call in calls] == ["high", "low", "also low"]
    assert str(report) == "3 completed"
    assert len(report) == 3
    assert {job.status.value for job in submitted(shelve)} == {"completed"}


def test_report_names_job_attempt_and_result(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("shelve", {"title": "Emma", "copies": 3})
    (attempt,) = run_due().completed
    assert (attempt.job_id, attempt.job_type, attempt.attempt) == (job.id, "shelve", 1)
    assert attempt.result == 3


async def test_async_test_runs_jobs_on_its_own_event_loop(laneway_app: Laneway) -> None:
    await shelve.submit(title="Emma")
    report = await run_due_async()
    assert len(report.completed) == 1


def test_end_hook_of_a_job_runs_with_it(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("find", {"title": "Emma"})
    report = run_due(raise_failures=False)
    assert [(one.job_type, one.outcome) for one in report.attempts] == [
        ("find", "failed"), ("on_end.miss", "completed"),
    ]  # fmt: skip
    assert calls == [("miss", "Emma", "LookupError")]
    (hook,) = submitted("on_end.miss")
    assert str(job.id) in str(hook.payload)


def test_flow_runs_in_its_order(laneway_app: Laneway) -> None:
    with laneway_app.sync.flow("library") as flow:
        shelves = [flow.add(shelve, title="Emma", copies=n) for n in (1, 2)]
        last = flow.add(collect, after=shelves)
    assert [one.job_type for one in run_due().completed] == ["shelve", "shelve", "collect"]
    assert last.get().result == [1, 2]
    assert flow.get().status == "completed"


@pytest.mark.usefixtures("between_schedules")
def test_waits_of_a_handler_end_with_the_clock_and_with_events(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("order", {"titles": ["Emma", "Persuasion"]})
    ran = [(one.job_type, one.outcome) for one in run_due().attempts]
    assert Counter(ran) == {("order", "waiting"): 2, ("shelve", "completed"): 2}
    asleep = job.get().waits_for
    assert asleep is not None
    assert (asleep.kind, asleep.name) == ("sleep", "transport")
    assert len(run_due()) == 0
    clock.advance_to_next()
    assert [one.outcome for one in run_due().attempts] == ["waiting"]
    laneway_app.sync.send_event("paid", key="7", payload="ann")
    (done,) = run_due().completed
    assert (done.attempt, done.result) == (4, {"copies": [1, 1], "by": "ann"})


@pytest.mark.usefixtures("between_schedules")
def test_event_that_does_not_come_times_out_by_the_clock(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("order", {"titles": []}, max_retries=0)
    for hours in (1, 24):
        run_due()
        clock.advance(hours=hours)
    with pytest.raises(WaitTimeout, match="'paid' with key '7' did not come within 86400 s"):
        run_due()


async def test_sync_form_is_refused_inside_an_event_loop(laneway_app: Laneway) -> None:
    with pytest.raises(LanewayError, match="await run_due_async"):
        run_due()


def test_handlers_for_child_processes_run_in_this_one(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("press")
    assert run_due().completed[0].result == os.getpid()
    assert calls == ["press"]


def test_exception_of_handler_is_raised_with_its_traceback(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("bind", {"title": "broken"})
    with pytest.raises(ValueError, match="the spine is broken") as caught:
        run_due()
    assert "bind_book" in [entry.name for entry in caught.traceback]


def test_exceptions_of_several_handlers_are_raised_together(laneway_app: Laneway) -> None:
    laneway_app.sync.submit_many([("bind", {"title": "broken"})] * 2)
    with pytest.raises(BaseExceptionGroup, match="2 attempts failed") as caught:
        run_due()
    assert [type(one) for one in caught.value.exceptions] == [ValueError, ValueError]


def test_failures_are_returned_if_asked_for(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("bind", {"title": "broken"}, max_retries=0)
    (failed,) = run_due(raise_failures=False).failed
    assert failed.error is not None
    assert failed.error.message == "the spine is broken"
    assert isinstance(failed.exception, ValueError)


@pytest.mark.usefixtures("between_schedules")
def test_retry_waits_for_the_clock_and_the_budget_ends_it(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("bind", {"title": "broken"})
    assert len(run_due(raise_failures=False).retrying) == 1
    assert len(run_due()) == 0
    for _ in range(2):
        clock.advance_to_next()
        run_due(raise_failures=False)
    assert job.get().status == "failed"
    assert [call[2] for call in calls] == [1, 2, 3]


def test_failure_without_an_exception_of_the_handler_is_raised(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("late", max_retries=0)
    with pytest.raises(AttemptFailed, match=r"late .* failed: Timeout: took longer"):
        run_due()


def test_exception_of_middleware_is_raised(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("shelve", {"title": "Emma"}, tags=["unstamped"])
    with pytest.raises(PermissionError, match="no stamp"):
        run_due()
    assert calls == []


@pytest.mark.parametrize("kind", ["snooze", "retry", "cancel"])
def test_signals_of_handlers_are_not_raised(laneway_app: Laneway, kind: str) -> None:
    laneway_app.sync.submit("signal", {"kind": kind})
    report = run_due()
    outcomes = {"snooze": "snoozed", "retry": "retrying", "cancel": "cancelled"}
    assert [one.outcome for one in report] == [outcomes[kind]]


def test_jobs_that_a_handler_submits_run_too(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("lend", {"title": "Emma"})
    run_due()
    assert ("remind", "Emma") not in calls
    clock.advance(hours=1)
    run_due()
    assert ("remind", "Emma") in calls


def test_jobs_that_keep_coming_back_are_named_at_the_bound(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("again")
    with pytest.raises(TooManyAttempts, match=r"ran 7 attempts .*again \(7 attempts, each a new"):
        run_due(max_jobs=7)
    assert len(submitted(again)) == 8


def test_exactly_as_many_jobs_as_the_bound_are_fine(laneway_app: Laneway) -> None:
    laneway_app.sync.submit_many([("shelve", {"title": "Emma"})] * 3)
    assert len(run_due(max_jobs=3)) == 3


def test_handler_that_waits_for_its_child_is_named(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("wait_for_child")
    for timeout in (0.5, 5, 30):  # a busy machine may start it late
        with pytest.raises(StillRunning, match=r"run_due\(concurrency=2\)") as caught:
            run_due(timeout=timeout)
        if "still running: nothing" not in str(caught.value):
            break
    assert "wait_for_child" in str(caught.value)


def test_concurrency_lets_a_handler_wait_for_its_child(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("wait_for_child")
    assert {one.result for one in run_due(concurrency=2).completed} == {1}


def test_running_job_notices_its_cancellation(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("stop_myself")
    assert len(run_due().cancelled) == 1


def test_analysis_and_approval_are_part_of_the_run(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("sell", {"title": "Emma"})
    assert [one.outcome for one in run_due()] == ["analyzed"]
    laneway_app.sync.approve(job.id, by="ann")
    assert [one.outcome for one in run_due()] == ["completed"]


@pytest.mark.usefixtures("between_schedules")
def test_injected_failure_replaces_the_call_and_is_not_raised(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("bind", {"title": "Emma"})
    fail_next(bind_book, TimeoutError("the press is busy"))
    (attempt,) = run_due().retrying
    assert attempt.is_injected
    assert calls == []
    clock.advance_to_next()
    assert run_due().completed[0].attempt == 2
    assert job.wait(timeout=1) == "EMMA"


def test_injected_failures_come_as_often_as_asked(laneway_app: Laneway) -> None:
    laneway_app.sync.submit_many([("shelve", {"title": "Emma"})] * 3)
    fail_next("shelve", OSError, times=2)
    report = run_due()
    assert (len(report.retrying), len(report.completed)) == (2, 1)


def test_only_exceptions_of_known_handlers_can_be_injected(laneway_app: Laneway) -> None:
    with pytest.raises(InvalidInput, match="must be an exception"):
        fail_next(shelve, "no")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no handler 'shelf'"):
        fail_next("shelf", OSError)
    with pytest.raises(InvalidInput, match="at least 1"):
        fail_next(shelve, OSError, times=0)


def test_verbs_need_a_bound_application() -> None:
    with pytest.raises(LanewayError, match="request the fixture laneway_app"):
        run_due()


def test_no_thread_or_process_is_left(laneway_app: Laneway) -> None:
    before = threading.active_count()
    laneway_app.sync.submit("shelve", {"title": "Emma"})
    laneway_app.sync.close()
    run_due()
    assert threading.active_count() <= before


def test_wait_without_run_due_names_it(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("shelve", {"title": "Emma"})
    with pytest.raises(TimeoutError, match=r"approved \(queued\); call run_due\(\) first"):
        job.wait(timeout=0.01)
