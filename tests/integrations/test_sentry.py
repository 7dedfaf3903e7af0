"""Failures of handlers reach Sentry once, with their job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

PROGRAM = """
import asyncio, json
import sentry_sdk
from sentry_sdk.transport import Transport
from laneway import Cancel, Context, Laneway, Retry, RetryPolicy, SyncContext
from laneway.errors import JobFailed
from laneway.integrations.sentry import install


class Printed(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            print(json.dumps(event, default=str), flush=True)


# All default integrations, as users have them: the log lines of the worker must not be events too.
sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=Printed)
lw = Laneway(log_level="CRITICAL")
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


async def main():
    async with lw, lw.worker():
        jobs = [
            await lw.submit("async", {"secret": "hunter2"}),
            await lw.submit("plain"),
            await lw.submit("wanted"),
            await lw.submit("slow"),
            await lw.submit("insists"),
        ]
        for job in jobs:
            try:
                await job.wait(timeout=60)
            except JobFailed:
                pass


asyncio.run(main())
"""


def tags(event: dict[str, Any]) -> dict[str, str]:
    return {name.removeprefix("laneway."): value for name, value in event["tags"].items()}


def test_failed_attempts_are_reported_once_with_their_job(dsn: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
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
    }
    assert len(events) == len(found)
    assert len({tags(event)["job_id"] for event in events}) == 4
    assert "hunter2" not in str([event.get("extra") for event in events])
