"""Changes of all jobs of a flow, in batches: each is one transaction, the first with the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from laneway.domain.bulk import STATUSES, BulkVerb
from laneway.domain.flow import Flow
from laneway.domain.redaction import redact
from laneway.errors import NotFound
from laneway.store import audit, flows, jobs
from laneway.store.statement import Statement

if TYPE_CHECKING:
    # The driver is imported when it is needed.
    from laneway.store.database import Database, Runner

# Jobs that one transaction looks at.
BATCH: Final = 500
_NOT_STARTED: Final = STATUSES[BulkVerb.REPRIORITIZE]


class CancelledFlow(NamedTuple):
    """The number of jobs cancelled or asked to stop, and the workers to notify."""

    changed: int
    workers: frozenset[UUID]


class RetriedFlow(NamedTuple):
    """The number of jobs queued again, and the job types to wake."""

    changed: int
    wakes: frozenset[str]


async def find(runner: Runner, flow_id: UUID) -> Flow:
    """The flow; NotFound if there is none."""
    found = await runner.run(flows.get(flow_id))
    if found is None:
        raise NotFound(f"no flow {flow_id}", kind="flow", name=str(flow_id))
    return found


async def cancel(db: Database, flow_id: UUID, by: str, reason: str | None) -> CancelledFlow:
    """Cancels all jobs of a flow that have not ended; running ones are asked to stop."""
    changed, workers = 0, set[UUID]()
    before: int | None = None
    while True:
        async with db.transaction() as transaction:
            if before is None:
                after: dict[str, object] = {"reason": reason and redact(reason)}
                await record(transaction, by, "flow.cancelled", flow_id, after)
            done = await transaction.run(
                flows.cancel(flow_id, by, reason, limit=BATCH, before=before)
            )
        changed += done.cancelled + done.requested
        workers.update(done.workers or ())
        before = done.before
        if before is None:
            return CancelledFlow(changed, frozenset(workers))


async def retry(db: Database, flow_id: UUID, by: str) -> RetriedFlow:
    """Queues the failed and cancelled jobs of a flow again."""
    changed, wakes = 0, set[str]()
    after: int | None = 0
    while after is not None:
        async with db.transaction() as transaction:
            if not after:
                await record(transaction, by, "flow.retried", flow_id)
            done = await transaction.run(flows.retry(flow_id, limit=BATCH, after=after))
        changed += done.retried
        wakes.update(done.wakes or ())
        after = done.after
    return RetriedFlow(changed, frozenset(wakes))


async def reprioritize(db: Database, flow_id: UUID, by: str, priority: int) -> int:
    """Changes the priority of the jobs of a flow that have not started; returns their number."""
    await record(db, by, "flow.reprioritized", flow_id, {"priority": priority})
    changed, after = 0, 0
    while True:
        page = await db.run(flows.states(flow_id, limit=BATCH, after=after))
        for job in page.items:
            # One by one: claims wait for none of them for long.
            if job.status in _NOT_STARTED:
                found = await db.run(jobs.reprioritize(job.id, priority))
                changed += found.found_in in _NOT_STARTED
        if page.next_cursor is None:
            return changed
        after = page.next_cursor


async def record(
    runner: Runner, by: str, action: str, flow_id: UUID, after: dict[str, object] | None = None
) -> None:
    """Writes the audit entry of a change, with the flow as it was before; NotFound without one."""
    flow = await find(runner, flow_id)
    before = {"status": flow.status.value, "unfinished": flow.counts.unfinished}
    entry: Statement[None] = audit.record(
        by,
        action,
        "flow",
        str(flow_id),
        workspace=flow.workspace,
        before=before,
        after={"name": flow.name, **(after or {})},
    )
    await runner.run(entry)
