"""Two applications with handlers of one job type."""

from __future__ import annotations

import pytest

from laneway import Context, Laneway
from laneway.control import health
from tests.engine.workshop import QUICK, Workshop


async def test_second_application_does_not_undo_an_approval(
    shop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    strict = Laneway(shop.dsn, application="shop", **QUICK)
    loose = Laneway(shop.dsn, application="billing", **QUICK)
    client = Laneway(shop.dsn, **QUICK)

    @strict.handler("refund", approval=True)
    async def asks(ctx: Context) -> None: ...

    @loose.handler("refund")
    async def asks_nobody(ctx: Context) -> None: ...

    async with strict, loose, client:
        await shop.hire(strict)
        assert "refund" not in caplog.text
        await shop.hire(loose)
        assert (
            "job type refund is published by billing, shop with different approval" in caplog.text
        )
        job = await client.submit("refund")
        assert shop.status(job) == "awaiting_approval"
        found = await health.check_publishers(client.database)
        assert found.finding is health.Finding.WARN
        assert "refund" in found.message
