"""Handlers whose arguments have a schema that is too large to publish."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from laneway import Context
from laneway.domain.json_schema import MAX_BYTES
from laneway.errors import JobFailed
from tests.support.worker_harness import WorkerHarness

Large = Annotated[int, Field(description="x" * MAX_BYTES)]


async def test_type_is_published_without_its_schema_and_checked_by_the_worker(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("large", max_retries=0)
    async def large(ctx: Context, count: Large) -> int:
        return count

    @harness.lw.handler("large_default")
    async def large_default(ctx: Context, text: str = "y" * MAX_BYTES) -> int:
        return len(text)

    await harness.start_worker()
    published = "select array_agg(name::text order by name) from laneway.job_types"
    published += " where name ~ '^large' and published_at is not null and arguments is null"
    assert harness.one(published) == ["large", "large_default"]
    for name in ("large", "large_default"):
        assert f"handler '{name}': the JSON Schema of its arguments is not published" in caplog.text
    assert await (await harness.lw.submit("large", {"count": 3})).wait(60) == 3
    wrong = harness.one(
        """select job_id from laneway.submit('large', '{"count": "many"}', wake => true)"""
    )
    with pytest.raises(JobFailed, match=r"payload\.count: must be a valid integer"):
        await harness.lw.wait(wrong, 60)
