"""Log lines of a worker about attempts that were ended from outside."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from laneway.domain.approval import analysis_of
from laneway.domain.claim import Claim
from laneway.engine.lease import attempt_log
from laneway.engine.lease.attempt_log import LossLog


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


@pytest.fixture(autouse=True)
def hour(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(attempt_log, "INTERVAL_S", 3600.0)
    caplog.set_level(logging.INFO, "laneway")


async def test_many_losses_are_counted_instead_of_logged_one_by_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    losses = LossLog()
    for n in range(500):
        losses.log("mail", Claim(n, UUID(int=n), 1), "lost")
    losses.log("rare", Claim(7, UUID(int=7), 2), "lost")
    losses.close()
    found = lines(caplog)
    assert len(found) == attempt_log.MAX_LINES + 2
    why = "taken away: the lease could not be renewed in time"
    assert found[0] == (logging.WARNING, f"mail {UUID(int=0)}: attempt 1 was {why}")
    assert found[-2] == (logging.WARNING, f"rare {UUID(int=7)}: attempt 2 was {why}")
    assert found[-1] == (logging.WARNING, f"mail: 490 more attempts were {why}")


async def test_cancel_logs_no_warning_and_analysis_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    losses = LossLog()
    for n in range(attempt_log.MAX_LINES + 1):
        losses.log(analysis_of("mail"), Claim(n, UUID(int=n), 1), "cancel_requested")
    losses.close()
    assert {level for level, _ in lines(caplog)} == {logging.INFO}
    assert lines(caplog)[-1][1].startswith("analysis of mail: 1 more attempts were asked to stop")
