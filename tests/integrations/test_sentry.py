"""Failures of handlers reach Sentry once, with their job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import asyncio, json, os
import sentry_sdk
from sentry_sdk.transport import Transport
from laneway import Analysis, Cancel, Context, Laneway, Retry, RetryPolicy, SyncContext
from laneway.errors import JobFailed
from laneway.integrations.sentry import install


class Written(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            # One write, because several processes write here.
            file = os.open(os.environ["EVENTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(file, json.dumps(event, default=str).encode() + b"\\n")
            os.close(file)


# All default integrations, as users have them: the log lines of the worker must not be events too.
sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=Written)
lw = Laneway(log_level="CRITICAL")


@lw.middleware
async def before(ctx, call_next):
    if ctx.job_type == "early":
        raise LookupError("no tenant")
    return await call_next()


install(lw)
SOON = RetryPolicy(base=0.01, jitter=0)


@lw.handler("async", max_retries=1, retry=SOON)
async def fails(ctx: Context, secret: str) -> None:
    raise ValueError(f"attempt {ctx.attempt}")


@lw.handler("plain", max_retries=0)
def fails_too(ctx: SyncContext) -> None:
    raise KeyError("plain")


@lw.handler("wanted", max_retries=1)
async def wanted(ctx: Context) -> str:
    if ctx.attempt == 1:
        raise Retry(after=0)
    raise Cancel("no longer needed")


@lw.handler("slow", max_retries=0, timeout=0.1)
async def slow(ctx: Context) -> None:
    await asyncio.Event().wait()


@lw.handler("insists", max_retries=0)
async def insists(ctx: Context) -> None:
    raise Retry(after=0)


@lw.handler("early", max_retries=0)
async def early(ctx: Context) -> None: ...


@lw.handler("child", max_retries=0, isolation="process")
def child(ctx: SyncContext) -> None:
    raise OSError("child")


@lw.handler("analysed", approval=True, max_retries=0, retry=SOON)
async def analysed(ctx: Context) -> None: ...


@analysed.analyze
async def look() -> Analysis:
    raise ArithmeticError("no plan")


async def main():
    async with lw, lw.worker():
        jobs = [
            await lw.submit("async", {"secret": "hunter2"}),
            await lw.submit("plain"),
            await lw.submit("wanted"),
            await lw.submit("slow"),
            await lw.submit("insists"),
            await lw.submit("early"),
            await lw.submit("child"),
            await lw.submit("analysed"),
        ]
        for job in jobs:
            try:
                await job.wait(timeout=60)
            except JobFailed:
                pass


if __name__ == "__main__":
    asyncio.run(main())
"""


def tags(event: dict[str, Any]) -> dict[str, str]:
    return {name.removeprefix("laneway."): value for name, value in event["tags"].items()}


def test_failed_attempts_are_reported_once_with_their_job(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "reports.py").write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "reports.py"],
        cwd=tmp_path,
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn, "EVENTS": str(tmp_path / "events")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    found = {
        (tags(event)["job_type"], tags(event)["attempt"]): (
            event["level"],
            event["exception"]["values"][-1]["type"] if "exception" in event else None,
            tags(event)["lane"],
        )
        for event in events
    }
    assert found == {
        ("async", "1"): ("warning", "ValueError", "default"),
        ("async", "2"): ("error", "ValueError", "default"),
        ("plain", "1"): ("error", "KeyError", "default"),
        ("insists", "1"): ("error", "Retry", "default"),
        ("slow", "1"): ("error", None, "default"),
        ("early", "1"): ("error", None, "default"),
        ("child", "1"): ("error", "OSError", "default"),
        ("analysed", "3"): ("error", None, "analysis"),
    }
    assert len(events) == len(found)
    assert len({tags(event)["job_id"] for event in events}) == 7
    assert "hunter2" not in str([event.get("extra") for event in events])
    frames = [
        frame
        for event in events
        for error in event.get("exception", {}).get("values", [])
        for frame in error["stacktrace"]["frames"]
    ]
    own = [each for each in frames if each["module"].startswith("laneway.")]
    assert own
    assert not [each for each in own if "vars" in each]
    assert [each for each in frames if "vars" in each]
