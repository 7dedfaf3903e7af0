"""Logging of the application that raises, or uses the names of Laneway's fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from laneway import Context
from laneway.engine.process.logs import JsonLines
from laneway.observability.safe_logger import SafeLogger
from tests.support.worker_harness import WorkerHarness, wait_until

FIELDS = ("job_id", "job_type", "lane", "attempt", "duration", "slots", "reason", "error_type")


@pytest.fixture
def own_fields() -> Iterator[None]:
    """The application sets fields of the same names on all its records."""
    before = logging.getLogRecordFactory()

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        vars(record).update(dict.fromkeys(FIELDS, "the application's"))
        return record

    logging.setLogRecordFactory(make)
    yield
    logging.setLogRecordFactory(before)


@pytest.fixture
def raising_filter() -> Iterator[None]:
    def fails(record: logging.LogRecord) -> bool:
        raise RuntimeError("a broken filter")

    loggers = [logging.getLogger(name) for name in ("laneway", "laneway.jobs")]
    for one in loggers:
        one.addFilter(fails)
    yield
    for one in loggers:
        one.removeFilter(fails)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
@pytest.mark.parametrize("hostile", ["own_fields", "raising_filter"])
async def test_jobs_run_to_their_end_whatever_logging_does(
    harness: WorkerHarness,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
    hostile: str,
    level: int,
) -> None:
    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context, how: str) -> str:
        if how == "fail":
            raise ValueError("no luck")
        return how

    caplog.set_level(level, "laneway")
    request.getfixturevalue(hostile)
    worker = await harness.start_worker()
    good = await harness.lw.submit("job", {"how": "finish"})
    bad = await harness.lw.submit("job", {"how": "fail"})
    assert (await harness.ended(good)).status == "completed"
    ended = await harness.ended(bad)
    assert (ended.status, ended.attempt) == ("failed", 1)
    # What follows the line about an end is done too: room and leases are free again.
    for _ in range(3):
        again = await harness.lw.submit("job", {"how": "finish"})
        assert (await harness.ended(again)).attempt == 1
    await wait_until(lambda: harness.one("select count(*) from laneway.lease") == 0)
    await worker.stop()
    assert "completer" not in caplog.text


async def test_fields_that_the_application_has_already_get_a_prefix(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture, own_fields: None
) -> None:
    @harness.lw.handler("job", lane="docs")
    async def job(ctx: Context) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await wait_until(lambda: [one for one in caplog.records if one.name == "laneway.jobs"])
    (record,) = (one for one in caplog.records if one.name == "laneway.jobs")
    assert vars(record)["job_id"] == "the application's"
    assert vars(record)["laneway_job_id"] == str(submitted.id)
    line = json.loads(JsonLines().format(record))
    assert (line["job_id"], line["lane"]) == (str(submitted.id), "docs")
    served = [one for one in caplog.records if vars(one).get("laneway_slots")]
    assert [vars(one)["laneway_lane"] for one in served] == ["docs"]


class NoTenantError(Exception):
    pass


def test_dropped_line_is_reported_once_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    log = SafeLogger("laneway.hostile")

    def fails(record: logging.LogRecord) -> bool:
        raise NoTenantError("no tenant")

    log.logger.addFilter(fails)
    for _ in range(3):
        log.warning("a line")
    assert capsys.readouterr().err == (
        "laneway: a line of the logger laneway.hostile was dropped: the application's logging"
        " raised NoTenantError: no tenant; further lines that fail with NoTenantError are dropped"
        " silently\n"
    )


def test_line_names_the_code_that_logged_it(caplog: pytest.LogCaptureFixture) -> None:
    SafeLogger("laneway").warning("a line")
    SafeLogger("laneway").log(logging.WARNING, "another")
    assert [one.filename for one in caplog.records] == ["test_hostile_logging.py"] * 2
