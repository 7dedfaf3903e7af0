"""Logging of the application that raises, or uses the names of Laneway's fields."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import laneway
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

    names = ("laneway", "laneway.jobs", "laneway.control")
    loggers = [logging.getLogger(name) for name in names]
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


async def test_worker_creates_what_it_declares_whatever_logging_does(
    harness: WorkerHarness, raising_filter: None
) -> None:
    @harness.lw.handler("job", lane="docs", limits=["llm"])
    async def job(ctx: Context) -> None: ...

    harness.lw.schedule("yearly", "job", cron="@yearly")
    await harness.start_worker()
    assert (await harness.ended(await harness.lw.submit("job"))).lane == "docs"
    assert (await harness.lw.schedules.get("yearly")).job_type == "job"


async def test_failed_check_is_recorded_whatever_logging_does(
    harness: WorkerHarness, raising_filter: None
) -> None:
    @harness.lw.check("is_full")
    async def is_full() -> bool:
        raise ValueError("cannot look")

    await harness.start_worker()
    await harness.lw.schedules.put("x", job_type="t", cron="@yearly", check_name="is_full")
    await harness.lw.schedules.run_now("x", check=True)
    await wait_until(lambda: harness.rows("select 1 from laneway.schedule_slots"))
    (slot,) = await harness.lw.schedules.slots("x")
    assert (slot.outcome, slot.note) == ("failed", "check is_full: ValueError: cannot look")


async def test_accepted_change_is_returned_whatever_logging_does(
    harness: WorkerHarness, raising_filter: None
) -> None:
    assert not (await harness.lw.lanes.drain("default")).enabled


SUPERVISES = """
import logging, sys
from laneway.config.settings import Settings
from laneway.engine.process.supervisor import Supervisor
logging.getLogger("laneway").addFilter(lambda record: 1 / 0)
sys.exit(Supervisor(sys.argv[1:], 1, None, Settings()).run())
"""
STARTS = "import sys; open(sys.argv[1], 'a').write('started ')"


async def test_dead_child_is_replaced_whatever_logging_does(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    starts.touch()
    child = [sys.executable, "-c", STARTS, str(starts)]
    with subprocess.Popen([sys.executable, "-c", SUPERVISES, *child]) as supervisor:
        try:
            await wait_until(
                lambda: starts.read_text().count("started") >= 2 or supervisor.poll() is not None
            )
        finally:
            supervisor.terminate()
    assert starts.read_text().count("started") >= 2


def test_every_log_line_of_laneway_is_protected() -> None:
    src = Path(laneway.__file__).parent
    unprotected = [
        str(path.relative_to(src))
        for path in src.rglob("*.py")
        if re.search(r"^\w+ = logging\.getLogger\(", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert unprotected == []


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
