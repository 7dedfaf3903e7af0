"""Log lines of a worker about failed attempts."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from laneway import Cancel, Context, Retry, RetryPolicy, Snooze
from laneway.domain.claim import Claim
from laneway.engine.lease import attempt_log
from laneway.engine.registry import make_handler
from laneway.engine.run.attempt import Run
from laneway.engine.run.attempt_outcomes import error_json
from laneway.store.leases import Assignment, Verdict, WriteResult
from tests.support.worker_harness import WorkerHarness, wait_until

POLICY = RetryPolicy(base=0.05, cap=0.1, jitter=0)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(r.levelno, r.getMessage()) for r in caplog.records if "fail" in r.getMessage()]


async def test_each_failed_attempt_is_logged_with_its_consequence(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("mail", max_retries=2, retry=POLICY)
    async def mail(ctx: Context) -> None:
        if ctx.attempt == 2:
            raise Retry("busy", after=0.01)
        raise ValueError("two\nlines \x1b[31m" + "x" * 5000)

    await harness.start_worker()
    job = await harness.lw.submit("mail")
    await harness.ended(job)
    await wait_until(lambda: len(lines(caplog)) == 3)
    shown = "ValueError: two lines \\x1b[31m" + "x" * 5000
    short = shown[: attempt_log.LONGEST] + "…"
    assert lines(caplog) == [
        (logging.WARNING, f"mail {job.id}: attempt 1 failed: {short}; retry in 0.05 s"),
        (logging.WARNING, f"mail {job.id}: attempt 2 failed: Retry: busy; retry in 0.01 s"),
        (logging.ERROR, f"mail {job.id}: attempt 3 failed: {short}; the job has failed"),
    ]


async def test_only_failures_are_logged_as_failures(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("mail")
    async def mail(ctx: Context, how: str) -> None:
        if how == "cancel":
            raise Cancel("nothing to do")
        if how == "snooze" and ctx.attempt == 1:
            raise Snooze(0.01)

    worker = await harness.start_worker()
    for how in ("cancel", "snooze", "finish"):
        await harness.ended(await harness.lw.submit("mail", {"how": how}))
    await worker.stop()
    assert lines(caplog) == []


async def test_many_failures_are_counted_instead_of_logged_one_by_one(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_log, "INTERVAL_S", 3600.0)

    @harness.lw.handler("mail", max_retries=0)
    async def mail(ctx: Context) -> None:
        raise ValueError("no")

    @harness.lw.handler("rare", max_retries=0)
    async def rare(ctx: Context) -> None:
        raise ValueError("rare")

    worker = await harness.start_worker()
    await harness.lw.submit_many([("mail", {})] * 1000)
    await wait_until(lambda: harness.count("failed") == 1000)
    await harness.ended(await harness.lw.submit("rare"))
    await worker.stop()
    texts = [text for _, text in lines(caplog)]
    assert sum("attempt 1 failed" in text and text.startswith("mail") for text in texts) == 10
    assert sum(text.startswith("rare") for text in texts) == 1
    last = "mail: 990 more attempts failed, 990 of them for good; last error: ValueError: no"
    assert texts[-1] == last


async def test_lasting_burst_is_logged_one_summary_at_a_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_log, "INTERVAL_S", 3600.0)

    async def fn(ctx: Context) -> None: ...

    failures = attempt_log.FailureLog()

    def fail(many: int, status: str, then: str | None = None) -> int:
        caplog.clear()
        for n in range(many):
            claim = Claim(n, UUID(int=n), 1)
            assignment = Assignment(claim, 0, "mail", "{}", None, 0, fresh=True)
            verdict = Verdict(claim, "fail", error=error_json("E", "no"))
            failures.note(Run(assignment, make_handler("mail", fn), "default"), verdict)
            for one in (status, then):
                if one is not None:
                    failures.settled([verdict], [WriteResult(n, 1, "accepted", one)])
        if many > attempt_log.MAX_LINES:
            failures.throttle.end("mail")
        return len(caplog.records)

    assert fail(500, "approved") == attempt_log.MAX_LINES + 1
    assert fail(500, "approved") == 1
    assert caplog.records[0].levelno == logging.WARNING
    assert fail(500, "failed") == 1
    assert caplog.records[0].levelno == logging.ERROR
    failures.throttle.end("mail")
    assert fail(3, "approved") == 3
    failures.close()
    # Failures that were not logged are forgotten too.
    assert fail(3, "cancelled", then="failed") == 0
