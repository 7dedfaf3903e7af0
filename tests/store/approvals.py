"""Job types that need an analysis or an approval, and the states of their jobs."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.claim import Claim
from laneway.domain.job_type_policy import TypeRecord
from laneway.store import approvals, workers
from laneway.store.approvals import Decided
from laneway.store.leases import WriteResult
from tests.support.store_client import StoreClient

EUR = Analysis(cost=7, currency="EUR", plan=["one"])


def record(name: str = "t", **more: Any) -> TypeRecord:
    settings = {
        "lane": None, "priority": None, "max_retries": 3, "timeout_s": None, "isolation": "async",
        "stale": "heartbeat",
    }  # fmt: skip
    return TypeRecord(name=name, arguments="{}", **{**settings, **more})


def publish(
    db: StoreClient,
    name: str = "t",
    approval: Approval | None = None,
    *,
    analysis: bool = False,
    **more: Any,
) -> None:
    """Publish a type, as a worker with its handler does."""
    db.run(workers.publish([record(name, approval=approval, has_analysis=analysis, **more)]))


def analyzing(db: StoreClient, name: str = "t") -> Claim:
    """Claim the next analysis of the type."""
    (claim,) = db.claimed(1, [analysis_of(name)], lane="analysis")
    return claim


def analyzed(db: StoreClient, claim: Claim, analysis: Analysis = EUR) -> WriteResult:
    answer = db.settle(claim, "analyzed", result=json.dumps(analysis.to_dict()))
    assert answer is not None
    return answer


def awaiting(db: StoreClient, name: str = "t", **more: Any) -> int:
    """A new job of an analysed type that awaits approval."""
    seq = db.submit(name, **more)
    assert analyzed(db, analyzing(db, name)).status == "awaiting_approval"
    return seq


def status(db: StoreClient, seq: int) -> str:
    return str(db.one("select status from laneway.jobs_view where seq = %s", seq))


def approve(
    db: StoreClient,
    job: int | UUID,
    by: str = "ann",
    comment: str | None = None,
    seal: str | None = None,
) -> Decided:
    return db.run(approvals.approve(_id(db, job), by, comment, seal))


def reject(db: StoreClient, job: int | UUID, by: str = "ann", reason: str = "too much") -> Decided:
    return db.run(approvals.reject(_id(db, job), by, reason))


def _id(db: StoreClient, job: int | UUID) -> UUID:
    return job if isinstance(job, UUID) else db.id_of(job)
