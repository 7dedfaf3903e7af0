"""The statements of handlers that wait, run with the rights of a role."""

from __future__ import annotations

from typing import Any, Protocol

from laneway.domain.claim import Claim
from laneway.store import handler_waits, leases
from laneway.store.handler_waits import NewWait
from laneway.store.leases import Verdict
from laneway.store.statement import Statement


class Session(Protocol):
    """Runs statements as one database role."""

    def run(self, statement: Statement[Any], /) -> Any: ...


def run_waits(session: Session, claim: Claim) -> None:
    assert session.run(handler_waits.read([claim])) == [[]]
    assert session.run(handler_waits.begin(claim, NewWait("nap", "sleep", 0.0))).state == "done"
    none: list[Any] = []
    assert session.run(handler_waits.submit_sub_jobs(claim, "none", 0, 0, none)).stored == 0
    assert session.run(handler_waits.sub_job_results(claim, "none", 0)) == []
    assert session.run(handler_waits.results_of(claim, 0)) == []


def suspend(session: Session, claim: Claim) -> None:
    assert session.run(handler_waits.begin(claim, NewWait("nap", "sleep", 60.0))).state == "open"
    assert session.run(leases.settle([Verdict(claim, "wait", "nap")]))
