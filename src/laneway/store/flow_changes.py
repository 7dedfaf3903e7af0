"""Changes of all jobs of a flow, in batches: each is one transaction, the first with the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from laneway.domain.bulk import STATUSES, BulkVerb
from laneway.domain.flow import Flow
from laneway.domain.redaction import redact
from laneway.errors import NotFound, Refused
from laneway.store import audit, flows, jobs
from laneway.store.aborted_statements import StatementTimeout
from laneway.store.locked_jobs import LOCK_MS, LOCKED, Patience, run_unless_locked
from laneway.store.statement import Statement

if TYPE_CHECKING:
    # The driver is imported when it is needed.
    from laneway.store.database import Database, Runner

# Jobs that one transaction looks at.
BATCH: Final = 500
_NOT_STARTED: Final = STATUSES[BulkVerb.REPRIORITIZE]


class CancelledFlow(NamedTuple):
    """The number of jobs cancelled or asked to stop, and the workers to notify.

    `locked`: jobs that another transaction kept locked all the time.
    """

    changed: int
    workers: frozenset[UUID]
    locked: int = 0

    def check(self, flow_id: UUID) -> None:
        """Refused if jobs are left."""
        if self.locked:
            raise Refused(
                f"flow {flow_id}: {_jobs(self.changed)} cancelled or asked to stop; {self.locked}"
                " are locked by other transactions: cancel the flow again"
            )


class RetriedFlow(NamedTuple):
    """The number of jobs queued again, and the job types to wake.

    `is_cut`: it ended before a job that another transaction kept locked all the time.
    """

    changed: int
    wakes: frozenset[str]
    is_cut: bool = False

    def check(self, flow_id: UUID) -> None:
        """Refused if jobs are left."""
        if self.is_cut:
            raise Refused(
                f"flow {flow_id}: {_jobs(self.changed)} queued again; the next one {LOCKED}:"
                " retry the flow again"
            )


async def find(runner: Runner, flow_id: UUID) -> Flow:
    """The flow; NotFound if there is none."""
    found = await runner.run(flows.get(flow_id))
    if found is None:
        raise NotFound(f"no flow {flow_id}", kind="flow", name=str(flow_id))
    return found


async def cancel(db: Database, flow_id: UUID, by: str, reason: str | None) -> CancelledFlow:
    """Cancels all jobs of a flow that have not ended; running ones are asked to stop.

    It waits for no lock, and comes back to the jobs that are locked.
    """
    changed, workers = 0, set[UUID]()
    locked: list[int] = []
    before: int | None = None
    while True:
        async with db.transaction() as transaction:
            was = await find(transaction, flow_id) if before is None else None
            done = await transaction.run(
                flows.cancel(flow_id, by, reason, limit=BATCH, before=before, skipped=locked)
            )
            if was is not None:
                after: dict[str, object] = {"reason": reason and redact(reason)}
                await record(transaction, by, "flow.cancelled", flow_id, after, was)
        changed += done.cancelled + done.requested
        workers.update(done.workers or ())
        locked += done.skipped or ()
        before = done.before
        if before is None:
            break
    patience = Patience()
    while locked and await patience.pause():
        # All in each round, newest first as above: some may stay locked longer than others.
        left, locked = sorted(locked, reverse=True), []
        count = len(left)
        while left:
            some, left = left[:BATCH], left[BATCH:]
            done = await db.run(
                flows.cancel(flow_id, by, reason, limit=BATCH, only=some, skipped=[*locked, *left])
            )
            changed += done.cancelled + done.requested
            workers.update(done.workers or ())
            locked += done.skipped or ()
        if len(locked) < count:
            patience.renew()
    return CancelledFlow(changed, frozenset(workers), len(locked))


async def retry(db: Database, flow_id: UUID, by: str) -> RetriedFlow:
    """Queues the failed and cancelled jobs of a flow again, each after its parents."""
    changed, wakes = 0, set[str]()
    patience = Patience()
    is_first = True
    after: int | None = 0
    while after is not None:
        async with db.transaction() as transaction:
            was = await find(transaction, flow_id) if is_first else None
            done = await transaction.run(flows.retry(flow_id, limit=BATCH, after=after))
            if was is not None:
                await record(transaction, by, "flow.retried", flow_id, was=was)
        is_first = False
        changed += done.retried
        wakes.update(done.wakes or ())
        if done.after != after:
            patience.renew()
        after = done.after
        if done.is_busy and not await patience.pause():
            return RetriedFlow(changed, frozenset(wakes), is_cut=True)
    return RetriedFlow(changed, frozenset(wakes))


async def reprioritize(db: Database, flow_id: UUID, by: str, priority: int) -> int:
    """Changes the priority of the jobs of a flow that have not started; returns their number.

    It comes back to jobs that are locked; Refused if some stay so.
    """
    await record(db, by, "flow.reprioritized", flow_id, {"priority": priority})
    changed, after = 0, 0
    locked: list[UUID] = []
    while True:
        page = await db.run(flows.states(flow_id, limit=BATCH, after=after))
        queued = [job.id for job in page.items if job.status in _NOT_STARTED]
        done, left = await _reprioritize(db, queued, priority)
        changed += done
        locked += left
        if page.next_cursor is None:
            break
        after = page.next_cursor
    patience = Patience()
    while locked and await patience.pause():
        count = len(locked)
        done, locked = await _reprioritize(db, locked, priority)
        changed += done
        if len(locked) < count:
            patience.renew()
    if locked:
        raise Refused(
            f"flow {flow_id}: {_jobs(changed)} changed; {len(locked)} are locked by other"
            " transactions: change the priority again"
        )
    return changed


async def _reprioritize(
    db: Database, job_ids: Sequence[UUID], priority: int
) -> tuple[int, list[UUID]]:
    """Change jobs one by one, so that claims wait for none of them for long.

    Return how many were changed, and those that are locked.
    """
    changed, locked = 0, list[UUID]()
    for job_id in job_ids:
        try:
            change = jobs.reprioritize(job_id, priority, lock_ms=LOCK_MS)
            found = await run_unless_locked(db, change)
        except StatementTimeout:
            locked.append(job_id)
        else:
            changed += found.found_in in _NOT_STARTED
    return changed, locked


def _jobs(count: int) -> str:
    return "1 job was" if count == 1 else f"{count} jobs were"


async def record(
    runner: Runner,
    by: str,
    action: str,
    flow_id: UUID,
    after: dict[str, object] | None = None,
    was: Flow | None = None,
) -> None:
    """Writes the audit entry of a change; NotFound without a flow.

    It has the flow before the change and as it is now. `was`: the flow as it was, if it changed.
    """
    flow = await find(runner, flow_id)
    before = _state(was or flow)
    entry: Statement[None] = audit.record(
        by,
        action,
        "flow",
        str(flow_id),
        workspace=flow.workspace,
        before=before,
        after={**_state(flow), **(after or {})},
    )
    await runner.run(entry)


def _state(flow: Flow) -> dict[str, object]:
    unfinished = flow.counts.unfinished
    return {"name": flow.name, "status": flow.status.value, "unfinished": unfinished}
