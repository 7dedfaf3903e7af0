"""Texts of handlers are redacted before they are stored, logged or shown."""

from __future__ import annotations

import logging

import pytest

from laneway import Cancel, Context, PublicError, SyncContext
from laneway.domain.codec import to_json
from laneway.engine.process.logs import JsonLines, TextLines
from tests.engine import isolation_handlers
from tests.support.worker_harness import WorkerHarness, wait_until

SECRET = "hunter2Hunter3"
TEXT = (
    f"postgresql://ann:{SECRET}@db/app refused Authorization: Bearer {SECRET},"
    f" api_key={SECRET}, {{'client_secret': '{SECRET}'}}"
)


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_stored_error_and_log_line_hold_no_secret(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture, isolation: str
) -> None:
    @harness.lw.handler("async", max_retries=0)
    async def on_loop(ctx: Context, text: str) -> None:
        raise ValueError(text)

    @harness.lw.handler("thread", max_retries=0)
    def in_thread(ctx: SyncContext, text: str) -> None:
        raise ValueError(text)

    harness.lw.handlers.add(isolation_handlers.say.handler)
    await harness.start_worker()
    job = await harness.lw.submit(
        "process_say" if isolation == "process" else isolation, {"text": TEXT}
    )
    await harness.ended(job)
    await wait_until(lambda: [r for r in caplog.records if "attempt 1 failed" in r.getMessage()])
    for table in ("outcome", "jobs_view"):
        kept = harness.one(f"select error::text from laneway.{table}")
        assert SECRET not in kept
        assert "postgresql://ann:***@db/app refused" in kept
        assert "ValueError" in kept
    for form in (TextLines(), JsonLines()):
        assert SECRET not in "".join(map(form.format, caplog.records))


async def test_progress_log_lines_and_cancel_reasons_hold_no_secret(harness: WorkerHarness) -> None:
    shown: list[str] = []

    @harness.lw.handler("talk")
    async def talk(ctx: Context) -> None:
        # The second of each is cut inside the secret.
        await ctx.progress(1, 2, "x " * 490 + TEXT)
        ctx.log(TEXT)
        ctx.log("x " * 4076 + TEXT)
        await ctx.save({})
        shown.append(harness.one("select progress::text from laneway.jobs_view"))
        raise Cancel(TEXT)

    await harness.start_worker()
    job = await harness.lw.submit("talk")
    await harness.ended(job)
    kept = harness.rows(
        "select message from laneway.logs union all select cancel_reason from laneway.outcome"
    )
    assert len(kept) == 3
    assert len(shown) == 1
    assert SECRET[:5] not in str(kept) + str(shown)
    other = await harness.lw.submit("unknown")
    await other.cancel(TEXT)
    assert SECRET not in harness.one(
        "select cancel_reason from laneway.outcome o join laneway.jobs j using (seq)"
        " where j.job_type = 'unknown'"
    )
    assert SECRET not in str(harness.rows("select before, after from laneway.audit"))


async def test_password_of_database_is_known_to_redactor_of_worker(harness: WorkerHarness) -> None:
    from laneway.domain.redaction import redact

    password = "Zx81-plain-w0rd"
    redact.remember([f"postgresql://ann:{password}@db/app"])

    @harness.lw.handler("leak", max_retries=0)
    async def leak(ctx: Context) -> None:
        raise ValueError(f"login with {password} refused")

    await harness.start_worker()
    await harness.ended(await harness.lw.submit("leak"))
    assert (
        harness.one("select error ->> 'message' from laneway.outcome") == "login with *** refused"
    )


async def test_only_public_error_is_marked_public(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("read", max_retries=0)
    async def read(ctx: Context, public: bool) -> None:
        try:
            raise LookupError("row 7 of table pages")
        except LookupError as error:
            if public:
                raise PublicError("page 7 does not exist") from error
            raise

    caplog.set_level(logging.CRITICAL)
    await harness.start_worker()
    for public in (True, False):
        job = await harness.ended(await harness.lw.submit("read", {"public": public}))
        assert job.error is not None
        assert job.error.is_public is public
        assert "row 7" in (job.error.traceback or "")
        assert ("row 7" in str(to_json(job.error.public()))) is False
        assert ("page 7 does not exist" in str(to_json(job.error.public()))) is public
