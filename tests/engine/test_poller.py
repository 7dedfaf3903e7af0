"""The poll of a worker process: when the next one is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import pytest

from laneway.domain.lane import Lane
from laneway.engine.claim.floors import Floors
from laneway.engine.claim.poller import Poller
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from laneway.store.lanes import ControlState, Peek
from laneway.store.statement import Statement
from laneway.store.workers import Presence


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


class Reporter:
    """Has a report to make, and records the answers."""

    def __init__(self) -> None:
        self.answers: list[bool] = []

    def due_presence(self) -> Presence:
        return Presence(UUID(int=1))

    def on_reported(self, is_drained: bool) -> None:
        self.answers.append(is_drained)


@pytest.mark.parametrize("is_drained", [None, False, True])
async def test_poll_makes_a_due_report_along(is_drained: bool | None) -> None:
    asked: list[str] = []

    class Database:
        async def run(self, statement: Statement[Peek]) -> Peek:
            asked.append(statement.name)
            return Peek(1, False, [], None, None, is_drained)

    reporter = Reporter()
    poller = Poller(cast(Any, Database()), LogThrottle(), Owner(), reporter)
    await poller.run_once()
    assert asked == ["lanes/peek_and_touch"]
    assert reporter.answers == ([] if is_drained is None else [is_drained])


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
