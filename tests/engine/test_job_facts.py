"""The facts about its job that a handler reads from `ctx`."""

from __future__ import annotations

import pytest

from laneway import Context
from tests.engine import context_handlers
from tests.support.worker_harness import SOON, WorkerHarness


@pytest.mark.parametrize("kind", ["async", "thread", "process", "process_async"])
async def test_context_says_lane_retries_tags_and_submitter(
    either_harness: WorkerHarness, kind: str
) -> None:
    either_harness.lw.handlers.add(context_handlers.lw.handlers[f"{kind}_seen"])
    await either_harness.start_worker()
    job = await either_harness.lw.submit(
        f"{kind}_seen", tags=["b", 'a "quoted", one'], created_by="ann", max_retries=0
    )
    assert await job.wait(60) == {
        "job_type": f"{kind}_seen",
        "lane": "default",
        "max_retries": 0,
        "is_last_attempt": True,
        "tags": ["b", 'a "quoted", one'],
        "created_by": "ann",
    }
    plain = await either_harness.lw.submit(f"{kind}_seen")
    facts = await plain.wait(60)
    assert isinstance(facts, dict)
    assert (facts["max_retries"], facts["is_last_attempt"]) == (3, False)
    assert (facts["tags"], facts["created_by"]) == ([], None)


async def test_jobs_claimed_together_keep_their_own_facts(harness: WorkerHarness) -> None:
    found: dict[str, tuple[tuple[str, ...], str | None]] = {}

    @harness.lw.handler("job")
    async def job(ctx: Context, name: str) -> None:
        found[name] = ctx.tags, ctx.created_by

    jobs = await harness.lw.submit_many(
        [
            ("job", {"name": "a"}, {"tags": ["x"]}),
            ("job", {"name": "b"}, {"created_by": "ben"}),
            ("job", {"name": "c"}, {"concurrency_key": "k", "tags": ["y"]}),
            ("job", {"name": "d"}, {"concurrency_key": "k", "tags": ["z"], "created_by": "dan"}),
        ]
    )
    await harness.start_worker()
    for one in jobs:
        await one.wait(60)
    assert found == {
        "a": (("x",), None),
        "b": ((), "ben"),
        "c": (("y",), None),
        "d": (("z",), "dan"),
    }


async def test_last_attempt_is_the_one_without_a_retry_left(harness: WorkerHarness) -> None:
    seen: list[bool] = []

    @harness.lw.handler("job", max_retries=2, retry=SOON)
    async def job(ctx: Context) -> None:
        seen.append(ctx.is_last_attempt)
        raise ValueError("again")

    await harness.start_worker()
    await harness.ended(await harness.lw.submit("job"))
    assert seen == [False, False, True]
