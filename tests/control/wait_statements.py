"""The statements of handlers that wait, run with the rights of a role."""

from __future__ import annotations

from typing import Any

from laneway.domain.claim import Claim
from laneway.store import handler_waits, leases
from laneway.store.handler_waits import NewWait
from laneway.store.leases import Verdict
from tests.support.job_factory import JobFactory


def run_waits(factory: JobFactory, claim: Claim) -> None:
    assert factory.run(handler_waits.read([claim])) == [[]]
    assert factory.run(handler_waits.begin(claim, NewWait("nap", "sleep", 0.0))).state == "done"
    none: list[Any] = []
    assert factory.run(handler_waits.submit_sub_jobs(claim, "none", 0, 0, none)).stored == 0
    assert factory.run(handler_waits.sub_job_results(claim, "none", 0)) == []
    assert factory.run(handler_waits.results_of(claim, 0)) == []


def suspend(factory: JobFactory, claim: Claim) -> None:
    assert factory.run(handler_waits.begin(claim, NewWait("nap", "sleep", 60.0))).state == "open"
    assert factory.run(leases.settle([Verdict(claim, "wait", "nap")]))
