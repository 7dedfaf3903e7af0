"""A worker reports that it lives: along with its polls, and on its own where those are rare."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from laneway.engine.registrar import Registrar
from laneway.errors import DatabaseUnavailable
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from laneway.store.statement import Statement
from laneway.store.workers import WorkerInfo

INFO = WorkerInfo(
    id=UUID(int=1), name="w", host="h", pid=1, code="1", job_types=[], lanes=None, concurrency=1,
    transport="database",
)  # fmt: skip


class Reports:
    """A database that records the names of its statements."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_away = False

    async def run(self, statement: Statement[Any]) -> bool:
        self.asked.append(statement.name)
        if self.is_away:
            raise DatabaseUnavailable("away")
        return False


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def registrar(reports: Reports) -> Registrar:
    return Registrar(cast(Database, reports), LogThrottle(), INFO, lambda: None)


async def test_report_of_a_poll_stands_for_one_of_its_own(
    registrar: Registrar, reports: Reports
) -> None:
    due = registrar.due_presence()
    assert due is not None
    assert due.worker_id == INFO.id
    registrar.on_reported(is_drained=True)
    assert registrar.is_drained
    assert registrar.due_presence() is None
    pause = await registrar.run_once()
    assert pause is not None
    assert 0 < pause <= 5
    assert reports.asked == []


async def test_worker_whose_polls_are_rare_reports_on_its_own(
    registrar: Registrar, reports: Reports
) -> None:
    await registrar.run_once()
    assert reports.asked == ["workers/touch_worker"]
    assert registrar.due_presence() is None


async def test_request_is_answered_at_once_and_survives_an_outage(
    registrar: Registrar, reports: Reports
) -> None:
    registrar.on_reported(is_drained=False)
    registrar.wake()
    reports.is_away = True
    with pytest.raises(DatabaseUnavailable):
        await registrar.run_once()
    reports.is_away = False
    await registrar.run_once()
    await registrar.run_once()
    assert reports.asked == ["workers/touch_worker"] * 2


async def test_stopped_worker_reports_nothing(registrar: Registrar) -> None:
    await registrar.stop()
    assert registrar.due_presence() is None
