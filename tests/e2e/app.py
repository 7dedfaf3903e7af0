"""The application of the journeys: handlers that go on when a test lets them.

A stepped handler reads `LANEWAY_E2E_STEPS/<key>`, where a test writes how many steps are allowed
(`Steps`).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from laneway import Analysis, Approval, Context, Lane, Laneway, Limit, RetryPolicy
from tests.e2e import hostile

STEPS = "LANEWAY_E2E_STEPS"
_LOOK_S = 0.02

lw = Laneway(
    lanes=[
        Lane("exports", max_slots=4, poll_interval_ms=200),
        Lane("reports", max_slots=4, poll_interval_ms=200),
        Lane("thumbnails", max_slots=2, poll_interval_ms=200),
        Lane("calls", max_slots=4, poll_interval_ms=200),
        Lane("imports", max_slots=4, poll_interval_ms=200),
        Lane("hostile", max_slots=4, poll_interval_ms=200),
    ],
    limits=[Limit("partner", max_concurrent=1)],
)


class Steps:
    """The steps that stepped handlers may take, by key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def allow(self, key: str, steps: int = 1_000) -> None:
        """Let every handler with this key go on up to this step."""
        new = self._folder / f".{key}"
        new.write_text(str(steps))
        new.rename(self._folder / key)

    def allowed(self, key: str) -> int:
        try:
            return int((self._folder / key).read_text())
        except FileNotFoundError:
            return 0


async def reach(key: str, step: int) -> None:
    """Wait until this step is allowed."""
    steps = Steps(Path(os.environ[STEPS]))
    while steps.allowed(key) < step:  # noqa: ASYNC110 -- another process allows it
        await asyncio.sleep(_LOOK_S)


async def take_steps(ctx: Context, key: str, steps: int, noun: str) -> dict[str, Any]:
    for step in range(1, steps + 1):
        await reach(key, step)
        ctx.log(f"{noun} {step} of {steps}")
        await ctx.progress(step, steps, f"{noun} {step} of {steps}", stage="write")
    await reach(key, steps + 1)
    return {noun: steps, "key": key}


@lw.handler("export", lane="exports", priority=10)
async def export(ctx: Context, key: str, steps: int = 4, note: str = "") -> dict[str, Any]:
    return await take_steps(ctx, key, steps, "table")


@lw.handler("resize", lane="thumbnails")
async def resize(ctx: Context, key: str) -> dict[str, Any]:
    return await take_steps(ctx, key, 1, "picture")


@lw.handler("call_partner", lane="calls", limits=["partner"])
async def call_partner(ctx: Context, key: str) -> dict[str, Any]:
    return await take_steps(ctx, key, 1, "call")


@lw.handler("report", lane="reports", approval=True)
async def report(ctx: Context, key: str, steps: int = 4, year: int = 2026) -> dict[str, Any]:
    return await take_steps(ctx, key, steps, "chapter")


@report.analyze
def plan_report(key: str, steps: int = 4, year: int = 2026) -> Analysis:
    return Analysis(
        plan={"chapters": steps, "year": year, "reads": ["orders", "customers"]},
        cost=2.5,
        currency="EUR",
        warnings=["takes all connections of the warehouse"],
    )


@lw.handler("payout", lane="reports", approval=Approval(two_person=True))
async def pay_out(ctx: Context, account: str, cents: int) -> dict[str, Any]:
    return {"account": account, "cents": cents}


@lw.handler("take_order", lane="reports")
async def take_order(
    ctx: Context, key: str, event: str = "order.paid", name: str = "", timeout: float = 86_400
) -> dict[str, Any]:
    """Reserve the goods, then wait without a worker until an event says that they are paid."""
    await ctx.step("reserve the goods", dict, order=key)
    ctx.log(f"waiting for {event} {key}")
    paid = await ctx.wait_event(event, key=key, timeout=timeout, name=name or None)
    return {"order": key, "paid": paid}


@lw.handler("make_album", lane="reports")
async def make_album(ctx: Context, key: str, pictures: int = 3) -> dict[str, Any]:
    """Run one sub-job for each picture, and sleep before the album is printed."""
    jobs = [resize.job(key=f"{key}-{number}") for number in range(pictures)]
    done = await ctx.run_all("pictures", jobs)
    await ctx.sleep("let the ink dry", 3600)
    return {"pictures": len(done)}


class ImportRefused(Exception):
    """An import's own error."""


@lw.handler("import_file", lane="imports", max_retries=0)
async def import_file(
    ctx: Context, key: str, error: str, kind: str = "ImportRefused"
) -> dict[str, Any]:
    """Fail with this error of this type until the test allows a step."""
    ctx.log(f"reading {key}")
    if Steps(Path(os.environ[STEPS])).allowed(key) < 1:
        _refuse(type(kind, (ImportRefused,), {}), error)
    return {"imported": key}


def _refuse(kind: type[ImportRefused], error: str) -> None:
    raise kind(error)


@lw.handler("flaky_sync", lane="imports", retry=RetryPolicy(base=0.05, cap=0.05, jitter=0))
async def flaky_sync(ctx: Context, account: str) -> str:
    """Succeed at the third attempt."""
    if ctx.attempt < 3:
        raise ConnectionError(f"the server of {account} does not respond")
    return f"{account} is up to date"


@lw.handler(hostile.JOB_TYPE, lane="hostile", max_retries=0)
async def show_text(ctx: Context, key: str, texts: list[str], fails: bool = True) -> list[str]:
    """Put texts where people read them: log lines, progress, checkpoint, error or result."""
    for number, text in enumerate(texts, 1):
        ctx.log(text)
        await ctx.progress(number, len(texts), text, stage=text[:100])
        await ctx.save({"text": text, text[:200]: number})
        await reach(key, number)
    if fails:
        raise ImportRefused(" ".join(texts))
    return texts
