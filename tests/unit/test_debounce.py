"""Many triggers cause one call."""

from __future__ import annotations

import asyncio

from laneway.streams.debounce import Debounce


async def test_triggers_before_the_call_share_it() -> None:
    calls: list[None] = []
    called = asyncio.Event()

    def call() -> None:
        calls.append(None)
        called.set()

    debounce = Debounce(0.0, call)
    for _ in range(5):
        debounce.trigger()
    assert calls == [], "the call comes later, not in the trigger"
    await called.wait()
    assert len(calls) == 1


async def test_trigger_after_the_call_causes_another() -> None:
    called = asyncio.Event()
    debounce = Debounce(0.0, called.set)
    for _ in range(2):
        called.clear()
        debounce.trigger()
        await called.wait()


async def test_cancelled_debounce_does_not_call() -> None:
    calls: list[str] = []
    cancelled = Debounce(0.0, lambda: calls.append("cancelled"))
    cancelled.trigger()
    cancelled.cancel()
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, later.set)
    await later.wait()
    assert calls == []
