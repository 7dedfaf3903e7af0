"""The poll of a worker process: when the next one is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from laneway.domain.lane import Lane
from laneway.engine.claim.floors import Floors
from laneway.engine.claim.poller import Poller
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from laneway.store.lanes import ControlState, Peek


class Owner:
    """A worker with one lane that polls once a second."""

    state = ControlState(1, False, {"default": Lane("default", poll_interval_ms=1000)})

    def job_types(self) -> list[str]:
        return ["t"]

    def floors(self) -> list[Floors]:
        return []

    async def refresh(self) -> None:
        raise AssertionError("the lanes have not changed")

    def on_work(self, job_types: set[str]) -> None:
        """Claim nothing."""

    def on_foreign_work(self, job_types: set[str]) -> None:
        """Wake no other worker."""


class Answers:
    """A database that answers each poll with the next of these times."""

    def __init__(self, *answers: tuple[float | None, list[str] | None]) -> None:
        self._answers = list(answers)

    async def run(self, _: object) -> Peek:
        due_s, promoted = self._answers.pop(0)
        return Peek(1, False, [], promoted, due_s)


class Passed:
    """An alarm that has rung."""

    def when(self) -> float:
        return float("inf")

    def cancel(self) -> None:
        """Nothing is left to cancel."""


async def alarms(
    monkeypatch: pytest.MonkeyPatch, *answers: tuple[float | None, list[str] | None]
) -> list[float]:
    """When the next poll is due after each of these answers; only those before the interval."""
    delays: list[float] = []

    def call_later(delay_s: float, _: Callable[..., Any]) -> Passed:
        delays.append(round(delay_s, 2))
        return Passed()

    poller = Poller(cast(Database, Answers(*answers)), LogThrottle(), Owner())
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    for _ in answers:
        assert await poller.run_once() == 1
    monkeypatch.undo()
    return delays


async def test_polls_of_locked_work_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open transaction must not make every worker poll twenty times a second."""
    delays = await alarms(monkeypatch, *[(0.05, None)] * 8)
    assert delays == [0.05, 0.1, 0.2, 0.4, 0.8]


async def test_poll_that_moved_work_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    locked = (0.05, None)
    delays = await alarms(monkeypatch, locked, locked, (0.05, ["t"]), locked, locked)
    assert delays == [0.05, 0.1, 0.05, 0.05, 0.1]


async def test_due_work_is_polled_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    delays = await alarms(monkeypatch, (0.3, None), (0.0, ["t"]), (0.0, None), (0.04, None))
    assert delays == [0.3, 0.01, 0.01, 0.04]
