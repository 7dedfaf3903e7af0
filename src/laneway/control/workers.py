"""The overview: lanes and their slots, which job holds which slot, who is there, who leads."""

from __future__ import annotations

from dataclasses import dataclass

from laneway.control import lanes
from laneway.control.lanes import LaneStatus
from laneway.domain.job import Progress
from laneway.store import health
from laneway.store import lanes as lane_store
from laneway.store import workers as worker_store
from laneway.store.database import Database
from laneway.store.health import OldSnapshot
from laneway.store.lanes import ActiveJob, Gate
from laneway.store.workers import WorkerRow


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything an operator looks at first."""

    gate: Gate
    lanes: list[LaneStatus]
    active: list[ActiveJob]
    workers: list[WorkerRow]

    @property
    def live(self) -> list[WorkerRow]:
        return [worker for worker in self.workers if worker.is_live]

    @property
    def leader(self) -> WorkerRow | None:
        return next((worker for worker in self.workers if worker.is_leader), None)

    def to_dict(self) -> dict[str, object]:
        return {
            "paused": self.gate.paused,
            "paused_at": self.gate.paused_at.isoformat() if self.gate.paused_at else None,
            "paused_by": self.gate.paused_by,
            "leader": str(self.leader.id) if self.leader else None,
            "lanes": [each.to_dict() for each in self.lanes],
            "active": [active_to_dict(each) for each in self.active],
            "workers": [worker_to_dict(each) for each in self.live],
        }


async def overview(db: Database, *, active_limit: int = 1000) -> Overview:
    """Lanes, active jobs (longest first within a lane), workers seen within the hour."""
    return Overview(
        await db.run(lane_store.read_gate()),
        await lanes.inspect(db),
        await db.run(lane_store.active(active_limit)),
        await db.run(worker_store.listing()),
    )


def active_progress(job: ActiveJob) -> Progress | None:
    """How far an active job has come, if it said so."""
    if (job.stage, job.done, job.total, job.message) == (None, None, None, None):
        return None
    return Progress.of(job.done, job.total, job.message, job.stage)


def active_to_dict(job: ActiveJob) -> dict[str, object]:
    progress = active_progress(job)
    asked = job.cancel_requested_at
    return {
        "id": str(job.id),
        "lane": job.lane,
        "job_type": job.job_type,
        "attempt": job.attempt,
        "claimed_by": str(job.worker_id),
        "worker": job.worker,
        "claimed_at": job.claimed_at.isoformat(),
        "lease_until": job.lease_until.isoformat(),
        "held_s": round(float(job.held_s), 3),
        "cancel_requested_at": asked.isoformat() if asked else None,
        "progress": progress.to_dict() if progress else None,
    }


def worker_to_dict(worker: WorkerRow) -> dict[str, object]:
    return {
        "id": str(worker.id),
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "code": worker.code,
        "job_types": worker.job_types,
        "lanes": worker.lanes,
        "concurrency": worker.concurrency,
        "running": worker.running,
        "is_leader": worker.is_leader,
        "started_at": worker.started_at.isoformat(),
        "seen_at": worker.seen_at.isoformat(),
    }


async def oldest_transaction(db: Database) -> OldSnapshot | None:
    """The transaction of somebody else that has pinned dead rows for longest."""
    return await db.run(health.oldest_snapshot())
