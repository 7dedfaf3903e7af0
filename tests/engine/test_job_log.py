"""One log line for each job that starts and ends."""

from __future__ import annotations

import json
import logging
import re
from uuid import UUID

import pytest

from laneway import Cancel, Context, Snooze, SyncContext
from laneway.domain.claim import Claim
from laneway.engine.lease import job_log
from laneway.engine.lease.job_log import JobLogger, duration_text
from laneway.engine.process.logs import JsonLines, TextLines
from laneway.store.leases import Assignment, Verdict
from tests.support.worker_harness import WorkerHarness, wait_until


def records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.name == "laneway.jobs"]


def texts(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Level and message, with durations as N."""
    found = [(r.levelno, r.getMessage()) for r in records(caplog)]
    return [(level, re.sub(r" (?:<?[\d.]+ ms|[\d.]+ s)\Z", " N", text)) for level, text in found]


async def test_start_is_logged_at_debug_and_end_at_info_with_duration(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context, how: str) -> None:
        if how == "cancel":
            raise Cancel("enough")
        if how == "snooze" and ctx.attempt == 1:
            raise Snooze(0.01)

    caplog.set_level(logging.DEBUG, "laneway")
    await harness.start_worker()
    ids = {}
    for how in ("finish", "cancel", "snooze"):
        job = await harness.lw.submit("greet", {"how": how})
        await harness.ended(job)
        ids[how] = job.id
        count = {"finish": 2, "cancel": 4, "snooze": 8}[how]
        await wait_until(lambda count=count: len(records(caplog)) == count)  # type: ignore[misc]
    finish, cancel, snooze = ids["finish"], ids["cancel"], ids["snooze"]
    assert texts(caplog) == [
        (logging.DEBUG, f"greet {finish}: attempt 1 started"),
        (logging.INFO, f"greet {finish}: attempt 1 completed in N"),
        (logging.DEBUG, f"greet {cancel}: attempt 1 started"),
        (logging.INFO, f"greet {cancel}: attempt 1 cancelled after N"),
        (logging.DEBUG, f"greet {snooze}: attempt 1 started"),
        (logging.INFO, f"greet {snooze}: attempt 1 snoozed after N"),
        (logging.DEBUG, f"greet {snooze}: attempt 2 started"),
        (logging.INFO, f"greet {snooze}: attempt 2 completed in N"),
    ]


async def test_end_carries_its_fields_in_json_but_not_twice_in_text(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet", lane="docs")
    def greet(ctx: SyncContext) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    job = await harness.lw.submit("greet")
    await wait_until(lambda: records(caplog))
    (record,) = records(caplog)
    line = json.loads(JsonLines().format(record))
    assert (line["job_id"], line["job_type"], line["lane"]) == (str(job.id), "greet", "docs")
    assert (line["attempt"], line["logger"], line["level"]) == (1, "laneway.jobs", "info")
    assert 0 <= line["duration"] < 60
    assert "job_id=" not in TextLines().format(record)


async def test_nothing_is_logged_for_jobs_while_the_level_is_higher(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    caplog.set_level(logging.WARNING, "laneway.jobs")
    worker = await harness.start_worker()
    await harness.ended(await harness.lw.submit("greet"))
    await worker.stop()
    assert records(caplog) == []


async def test_many_ends_are_counted_instead_of_logged_one_by_one(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_log, "INTERVAL_S", 3600.0)

    @harness.lw.handler("greet")
    async def greet(ctx: Context) -> None: ...

    caplog.set_level(logging.DEBUG, "laneway")
    worker = await harness.start_worker()
    await harness.lw.submit_many([("greet", {})] * 1000)
    await wait_until(lambda: harness.count("completed") == 1000)
    await worker.stop()
    found = texts(caplog)
    assert sum(text.endswith("completed in N") for _, text in found) == 100
    assert sum(text.endswith("attempt 1 started") for _, text in found) == 100
    assert (logging.DEBUG, "900 more attempts started") in found
    assert found[-1][0] == logging.INFO
    assert re.fullmatch(r"900 more attempts ended: greet 900 completed, \S+ \S+ each", found[-1][1])


async def test_summary_names_the_most_frequent_kinds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_log, "MAX_LINES", 0)
    caplog.set_level(logging.INFO, "laneway")
    lines = JobLogger()
    for kind in range(8):
        for n in range(kind + 1):
            verdict = Verdict(Claim(n, UUID(int=n), 1), "finish", ran_s=0.25)
            lines.ended(f"type-{kind}", "default", verdict, "completed")
    lines.close()
    (record,) = records(caplog)
    assert record.getMessage() == (
        "36 more attempts ended: type-7 8 completed, 250 ms each; type-6 7 completed, 250 ms each;"
        " type-5 6 completed, 250 ms each; type-4 5 completed, 250 ms each;"
        " type-3 4 completed, 250 ms each; 6 others"
    )


def test_failed_and_lost_attempts_are_logged_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "laneway")
    lines = JobLogger()
    verdict = Verdict(Claim(1, UUID(int=1), 1), "fail", ran_s=0.1)
    for outcome in ("failed", "retried", "fenced", "left"):
        lines.ended("greet", "default", verdict, outcome)
    assert records(caplog) == []


def test_attempt_whose_handler_was_not_called_has_no_duration() -> None:
    assignment = Assignment(Claim(1, UUID(int=1), 1), 0, "greet", "{}", None, 0, fresh=True)
    assert "duration" not in job_log.job_fields("greet", "default", assignment)
    assert job_log.after_text(None) == ""


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0.0001, "<1 ms"),
        (0.0123, "12.3 ms"),
        (0.25, "250 ms"),
        (1.5, "1.5 s"),
        (99.94, "99.9 s"),
        (125.2, "125 s"),
        (36000, "36,000 s"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
