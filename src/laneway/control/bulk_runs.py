"""Runs bulk verbs in the background, a few per principal, and records their progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from laneway.control import bulk
from laneway.domain.bounds import UNBOUND, Bounds
from laneway.domain.bulk import BulkProgress, BulkRequest, BulkVerb
from laneway.domain.job import Job
from laneway.domain.permissions import Access, Reach
from laneway.errors import Forbidden, LanewayError, RateLimited
from laneway.observability.safe_logger import SafeLogger
from laneway.store import bulk as store
from laneway.store.database import Database

log = SafeLogger("laneway.control")

# Runs of one principal on one server: all runs share the server's connections.
MAX_RUNS: Final = 10
PERMISSION: Final[dict[BulkVerb, str]] = {
    BulkVerb.CANCEL: "jobs:cancel",
    BulkVerb.RETRY: "jobs:cancel",
    BulkVerb.DELETE: "jobs:cancel",
    BulkVerb.REPRIORITIZE: "workers:manage",
    BulkVerb.APPROVE: "jobs:approve",
    BulkVerb.REJECT: "jobs:approve",
    BulkVerb.RUN_NOW: "jobs:cancel",
}

Review = Callable[[Collection[bytes]], Awaitable[Mapping[bytes, Access]]]


def reach_of(access: Access, permission: str) -> Reach:
    """The jobs that a verb may change. Verbs on jobs also need to read them, as for one job."""
    reach = access.reach(permission)
    return reach & access.reach("jobs:read") if permission.startswith("jobs:") else reach


@dataclass(frozen=True, slots=True)
class BulkCaller:
    """The principal that requested a run, and what its secret allowed at that moment."""

    principal: UUID
    digest: bytes | None
    permission: str
    reach: Reach

    def limits(self, verb: BulkVerb) -> bulk.PrincipalLimits | None:
        """The bounds for jobs that are queued again; None: the verb queues none, or no bounds."""
        if verb is not BulkVerb.RETRY or self.reach.least_bounds == UNBOUND:
            return None
        reach = self.reach

        def bounds(job: Job) -> Bounds:
            at = {"owner": job.created_by, "workspace": job.workspace, "lane": job.lane}
            # A job that has left the reach since gets the strictest bounds.
            return reach.bounds(**at) if reach.covers(**at) else reach.least_bounds

        return bulk.PrincipalLimits(self.principal, bounds)


class BulkRuns:
    """The bulk runs of this process."""

    def __init__(self, database: Database, review: Review) -> None:
        self._database = database
        self._review = review
        self._principals: dict[asyncio.Task[None], UUID] = {}

    def check(self, principal: UUID) -> None:
        """Refuse another run of a principal that has too many."""
        if sum(each == principal for each in self._principals.values()) >= MAX_RUNS:
            raise RateLimited("too many bulk runs of yours are in progress", 5.0)

    def start(
        self, run_id: UUID, caller: BulkCaller, request: BulkRequest, by: str, upto: int | None
    ) -> None:
        task = asyncio.get_running_loop().create_task(self._run(run_id, caller, request, by, upto))
        self._principals[task] = caller.principal
        task.add_done_callback(self._principals.pop)

    async def close(self) -> None:
        """Stop between two jobs. The same request, sent again, continues from there."""
        for task in self._principals:
            task.cancel()
        await asyncio.gather(*self._principals, return_exceptions=True)

    async def _run(
        self, run_id: UUID, caller: BulkCaller, request: BulkRequest, by: str, upto: int | None
    ) -> None:
        progress, state = BulkProgress(request.verb), "running"
        try:
            limits = caller.limits(request.verb)
            run = bulk.run(self._database, request, by=by, upto=upto, limits=limits)
            async for progress in run:
                await self._report(run_id, "running", progress)
                await self._check_access(caller)
            state = "done"
        except LanewayError as error:
            state = "failed"
            log.warning("bulk %s (%s) failed: %s", request.verb, run_id, error)
        except Exception:
            state = "failed"
            log.exception("bulk %s (%s) failed", request.verb, run_id)
        finally:
            await self._report(run_id, state, progress)

    async def _check_access(self, caller: BulkCaller) -> None:
        """Stop a run whose principal may no longer do what it requested."""
        digest = caller.digest
        found = {} if digest is None else await self._review({digest})
        access = None if digest is None else found.get(digest)
        reach = None if access is None else reach_of(access, caller.permission)
        if reach is None or not set(caller.reach.terms) <= set(reach.terms):
            raise Forbidden("stopped: the principal that requested it no longer has the permission")

    async def _report(self, run_id: UUID, state: str, progress: BulkProgress) -> None:
        try:
            await self._database.run(store.report(run_id, state, progress.done, progress.refused))
        except LanewayError as error:
            log.warning("bulk run %s: its progress could not be stored: %s", run_id, error)
