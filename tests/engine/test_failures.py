"""Log lines of a worker about failed attempts."""

from __future__ import annotations

import json
import logging
import re
from uuid import UUID

import pytest

from laneway import Cancel, Context, Retry, RetryPolicy, Snooze, SyncContext
from laneway.domain.claim import Claim
from laneway.engine.lease import attempt_log
from laneway.engine.process.logs import JsonLines
from laneway.engine.registry import make_handler
from laneway.engine.run.attempt import Run
from laneway.engine.run.attempt_outcomes import error_json
from laneway.store.leases import Assignment, Verdict, WriteResult
from tests.engine import isolation_handlers
from tests.support.worker_harness import WorkerHarness, wait_until

POLICY = RetryPolicy(base=0.05, cap=0.1, jitter=0)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Level and first line of the records about failures, with durations as N."""
    found = [(r.levelno, r.getMessage().splitlines()[0]) for r in caplog.records]
    return [
        (level, re.sub(r"failed after (<?[\d.]+ ms|[\d.]+ s):", "failed after N:", text))
        for level, text in found
        if "fail" in text
    ]


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
        (logging.WARNING, f"mail {job.id}: attempt 1 failed after N: {short}; retry in 0.05 s"),
        (logging.WARNING, f"mail {job.id}: attempt 2 failed after N: Retry: busy; retry in 0.01 s"),
        (logging.ERROR, f"mail {job.id}: attempt 3 failed after N: {short}; the job has failed"),
    ]


def _validate(count: int) -> None:
    raise LookupError(f"no page {count}")


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_failure_is_logged_with_the_users_frames_and_its_fields(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture, isolation: str
) -> None:
    @harness.lw.handler("mail", max_retries=0)
    async def mail(ctx: Context) -> None:
        _validate(7)

    @harness.lw.handler("post", max_retries=0)
    def post(ctx: SyncContext) -> None:
        _validate(7)

    harness.lw.handlers.add(isolation_handlers.raises_deep.handler)
    await harness.start_worker()
    job_type = {"async": "mail", "thread": "post", "process": "raises_deep"}[isolation]
    job = await harness.lw.submit(job_type)
    await harness.ended(job)
    (record,) = await wait_until(
        lambda: [r for r in caplog.records if "the job has failed" in r.getMessage()]
    )
    first, *rest = record.getMessage().splitlines()
    assert re.search(r"failed after .* LookupError: no page 7; the job has failed\Z", first)
    assert rest[0] == "    Traceback (most recent call last):"
    assert rest[-1] == "    LookupError: no page 7"
    files = re.findall(r'File "([^"]+)"', record.getMessage())
    where = isolation_handlers.__file__ if isolation == "process" else __file__
    assert files == [where, where]
    line = json.loads(JsonLines().format(record))
    assert line["message"] == first
    assert line["error"] == "\n".join(rest)
    assert (line["job_id"], line["job_type"], line["lane"]) == (str(job.id), job_type, "default")
    assert (line["attempt"], line["error_type"], line["level"]) == (1, "LookupError", "error")
    assert line["duration"] >= 0


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
