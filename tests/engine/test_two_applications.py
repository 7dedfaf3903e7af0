"""Two applications with handlers of one job type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from laneway import Context, Laneway
from laneway.control import job_type_health
from laneway.control.health_check import Finding
from tests.support.worker_harness import QUICK, WorkerHarness, wait_until


async def test_second_application_does_not_undo_an_approval(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    strict = Laneway(harness.dsn, application="shop", **QUICK)
    loose = Laneway(harness.dsn, application="billing", **QUICK)
    client = Laneway(harness.dsn, **QUICK)

    @strict.handler("refund", approval=True)
    async def asks(ctx: Context) -> None: ...

    @loose.handler("refund")
    async def asks_nobody(ctx: Context) -> None: ...

    async with strict, loose, client:
        await harness.start_worker(strict)
        assert "refund" not in caplog.text
        await harness.start_worker(loose)
        assert (
            "job type refund is published by billing, shop with different approval" in caplog.text
        )
        job = await client.submit("refund")
        assert harness.status(job) == "awaiting_approval"
        found = await job_type_health.check_publishers(client.database)
        assert found.finding is Finding.WARN
        assert "refund" in found.message


async def test_application_not_seen_for_long_is_named_with_the_command(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    old = Laneway(harness.dsn, application="old_shop", **QUICK)
    new = Laneway(harness.dsn, application="shop", **QUICK)
    for app in (old, new):

        @app.handler("refund")
        async def refund(ctx: Context) -> None: ...

    async with old, new:
        await (await harness.start_worker(old)).stop()
        harness.do("update laneway.type_publishers set seen_at = seen_at - interval '60 days'")
        await harness.start_worker(new)
        command = "laneway admin workers forget-publisher old_shop --type refund"
        assert command in caplog.text
        assert "arguments, retries and limits no longer apply" in caplog.text
        found = await job_type_health.check_publishers(new.database)
        assert found.finding is Finding.WARN
        assert command in (found.next or "")
        assert "its approval policy binds others" in found.message


async def test_running_worker_keeps_its_application_seen(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.engine.registrar.SEE_S", 0.0)
    monkeypatch.setattr("laneway.engine.registrar.TOUCH_S", 0.05)

    @harness.lw.handler("refund")
    async def refund(ctx: Context) -> None: ...

    await harness.start_worker()
    harness.do("update laneway.type_publishers set seen_at = seen_at - interval '60 days'")
    recent = "select seen_at > now() - interval '1 day' from laneway.type_publishers"
    await wait_until(lambda: harness.rows(recent) == [(True,)])


PROGRAM = (
    "from laneway import Laneway\n"
    "lw = Laneway('postgresql://nowhere')\n"
    "@lw.handler('refund')\n"
    "async def refund(ctx): ...\n"
    "print(lw.registry.records()[0].application)\n"
)


def application(tmp_path: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_main_program_is_known_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "billing.py").write_text(PROGRAM)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__main__.py").write_text(PROGRAM)
    assert application(tmp_path, str(tmp_path / "billing.py")) == "billing"
    assert application(tmp_path, "-m", "billing") == "billing"
    assert application(tmp_path, "shop") == "shop"
    assert application(tmp_path, "-m", "shop") == "shop.__main__"


def test_code_without_a_file_is_known_as_the_main_program(tmp_path: Path) -> None:
    assert application(tmp_path, "-c", PROGRAM) == "__main__"
