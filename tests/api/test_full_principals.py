"""Principals at their bound take turns, and do not delay others."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from laneway.api.http.full_principals import AT_ONCE, FullPrincipals


async def test_requests_of_refused_callers_queue_and_others_do_not() -> None:
    full = FullPrincipals()
    refused, other = uuid4(), uuid4()
    full.note(refused)
    inside, most = 0, 0

    async def ask() -> None:
        nonlocal inside, most
        async with full.turn(refused):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(ask() for _ in range(20)))
    assert most == AT_ONCE
    async with full.turn(refused), full.turn(refused), full.turn(other):
        assert refused in full
        assert other not in full
