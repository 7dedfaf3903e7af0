"""A closed application opens again with its next use, also in another event loop."""

from __future__ import annotations

import asyncio

from laneway import Laneway


async def test_closed_application_opens_again_with_the_next_use(dsn: str) -> None:
    lw = Laneway(dsn)
    first = await lw.submit("a")
    await lw.close()
    assert (await lw.get(first.id)).status == "approved"
    await lw.close()
    lw.reopen()
    assert (await lw.get(first.id)).status == "approved"
    await lw.close()


def test_closed_application_opens_again_in_another_event_loop(dsn: str) -> None:
    lw = Laneway(dsn)

    async def use() -> None:
        await lw.submit("a")
        await lw.close()

    asyncio.run(use())
    asyncio.run(use())
    assert lw.sync.submit("a").get().status == "approved"
    lw.sync.close()
    assert lw.sync.submit("a").get().status == "approved"
    asyncio.run(lw.close())
