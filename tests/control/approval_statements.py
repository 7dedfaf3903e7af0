"""The statements of analyses and approvals, run with the rights of a role."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.filter import JobFilter
from laneway.domain.states import Status
from laneway.store import approvals, audit, flows, handler_waits, jobs, notify, steps
from tests.control.earlier_statements import read_migrations
from tests.control.reader_statements import REACH, find_by_prefix
from tests.support.job_factory import JobFactory


def prepare_gates(factory: JobFactory) -> None:
    """One type with an analysis, one with an approval, one whose policy comes after the submit."""
    factory.submit("early")
    factory.publish("early", approval=Approval(), has_analysis=True)
    cheap = Approval(below_cost=5, currency="EUR")
    factory.publish("costly", approval=cheap, has_analysis=True, max_age_s=3600.0)
    factory.publish("gated", approval=Approval(two_person=True))
    for _ in range(2):
        factory.submit("costly")


def run_gates(factory: JobFactory) -> None:
    """From an analysis to a run, and back to the next analysis."""
    for cost in (1, 9):
        (claim,) = factory.claim(analysis_of("costly"))
        analysis = json.dumps(Analysis(cost=cost, currency="EUR").to_dict())
        for _ in range(2):
            factory.settle(claim, "analyzed", result=analysis)
    (sealed,) = factory.claim("costly")
    factory.settle(sealed)
    assert factory.claim("early") == []


def prepare_approver(factory: JobFactory) -> list[UUID]:
    prepare_gates(factory)
    kinds: list[dict[str, Any]] = [{}, {"delay": 60.0}, {"unique_key": "k"}]
    jobs = [factory.submit("gated", created_by="me", **more) for more in kinds]
    return [*jobs, factory.submit("gated", created_by="schedule:gone")]


def run_approver(factory: JobFactory, data: list[UUID]) -> None:
    read_migrations(factory)
    due, later, refused, scheduled = data
    factory.conn.execute("select from laneway.jobs_as_text limit 0")
    factory.conn.execute("select id, status from laneway.jobs_view")
    factory.run(jobs.listing(JobFilter(status=Status.AWAITING_APPROVAL, max_cost=5, unit="EUR")))
    wanted = JobFilter(status=Status.PENDING, job_type="costly", q="x", within=REACH)
    factory.run(jobs.listing(wanted))
    factory.run(jobs.awaiting(JobFilter(q="x", max_cost=5, within=REACH)))
    factory.run(jobs.get(due))
    find_by_prefix(factory, due)
    factory.run(steps.listing(due))
    factory.run(handler_waits.listing(due))
    factory.run(flows.edges(due))
    factory.run(jobs.get_attempts(due))
    seal = factory.run(approvals.sealed(due)).seal
    assert factory.run(approvals.approve(due, "you", None, seal)).refusal is None
    assert factory.run(approvals.approve(due, "you", None, seal)).found_in == "approved"
    assert factory.run(approvals.approve(later, "you", None, None)).refusal is None
    assert factory.run(approvals.approve(scheduled, "you", None, None)).refusal == "two_person"
    assert factory.run(approvals.reject(refused, "you", "no")).refusal is None
    factory.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    assert len(factory.run(approvals.decisions(refused))) == 1
    factory.run(audit.record("you", "job.rejected", "job", str(refused)))
    factory.run(notify.wake("wake *"))
