"""Job types that need an analysis or an approval, and the way of their jobs."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.claim import Claim
from laneway.store import approvals, workers
from laneway.store.approvals import Decided
from laneway.store.leases import WriteResult
from tests.store.desk import Desk

EUR = Analysis(cost=7, currency="EUR", plan=["one"])


def record(name: str = "t", **more: Any) -> workers.TypeRecord:
    said = {
        "lane": None, "priority": None, "max_retries": 3, "timeout_s": None, "isolation": "async",
        "stale": "heartbeat",
    }  # fmt: skip
    return workers.TypeRecord(name=name, arguments="{}", **{**said, **more})


def publish(
    desk: Desk,
    name: str = "t",
    approval: Approval | None = None,
    *,
    analysis: bool = False,
    **more: Any,
) -> None:
    """As a worker that knows the type would."""
    desk.run(workers.publish([record(name, approval=approval, has_analysis=analysis, **more)]))


def analyzing(desk: Desk, name: str = "t") -> Claim:
    """The next analysis of the type, claimed."""
    (claim,) = desk.claimed(1, [analysis_of(name)], lane="analysis")
    return claim


def analyzed(desk: Desk, claim: Claim, said: Analysis = EUR) -> WriteResult:
    answer = desk.settle(claim, "analyzed", result=json.dumps(said.to_dict()))
    assert answer is not None
    return answer


def awaiting(desk: Desk, name: str = "t", **more: Any) -> int:
    """A new job of an analysed type that waits for somebody."""
    seq = desk.submit(name, **more)
    assert analyzed(desk, analyzing(desk, name)).status == "awaiting_approval"
    return seq


def status(desk: Desk, seq: int) -> str:
    return str(desk.one("select status from laneway.jobs_view where seq = %s", seq))


def approve(
    desk: Desk,
    job: int | UUID,
    by: str = "ann",
    comment: str | None = None,
    seal: str | None = None,
) -> Decided:
    return desk.run(approvals.approve(_id(desk, job), by, comment, seal))


def reject(desk: Desk, job: int | UUID, by: str = "ann", reason: str = "too much") -> Decided:
    return desk.run(approvals.reject(_id(desk, job), by, reason))


def _id(desk: Desk, job: int | UUID) -> UUID:
    return job if isinstance(job, UUID) else desk.id_of(job)
