"""One verb on all jobs that match a filter: counted by a dry run, done in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from laneway.api.http.auth import Caller, act_of, caller, gate, secret_digest
from laneway.api.http.idempotency import OnceOnly
from laneway.api.http.job_access import actable_reach, debug_reach
from laneway.api.http.paging import RequestBody as Sent
from laneway.api.http.problems import answers
from laneway.api.http.read_slots import ReadSlots
from laneway.api.http.responses import Json, location
from laneway.api.models.jobs import JobChoice
from laneway.control import bulk as verbs
from laneway.domain.bounds import UNBOUND, Bounds, check_priority_bound
from laneway.domain.bulk import BulkProgress, BulkRequest, BulkVerb
from laneway.domain.job import PRIORITY_RANGE, Job
from laneway.domain.permissions import Access, Reach
from laneway.errors import Forbidden, LanewayError, NotFound, RateLimited
from laneway.store import bulk as store
from laneway.store.bulk import StoredBulkRun
from laneway.store.database import Database

log = logging.getLogger("laneway.api")

router = APIRouter(prefix="/jobs/bulk", tags=["jobs"])

# Of one principal, at one server.
MOST_AT_ONCE: Final = 10
PERMISSION: Final[dict[BulkVerb, str]] = {
    BulkVerb.CANCEL: "jobs:cancel",
    BulkVerb.RETRY: "jobs:cancel",
    BulkVerb.DELETE: "jobs:cancel",
    BulkVerb.REPRIORITIZE: "workers:manage",
    BulkVerb.APPROVE: "jobs:approve",
    BulkVerb.REJECT: "jobs:approve",
}


class BulkRunRequest(Sent):
    """What to do, and to which jobs."""

    verb: Annotated[BulkVerb, Field(strict=False)]
    filter: JobChoice = JobChoice()
    all: bool = Field(default=False, description="Must be true where the filter is empty")
    reason: str | None = Field(
        default=None, min_length=1, max_length=2000, description="Needed to reject"
    )
    priority: int | None = Field(
        default=None,
        ge=PRIORITY_RANGE[0],
        le=PRIORITY_RANGE[1],
        description="Needed to reprioritize",
    )
    dry_run: bool = Field(default=False, description="Only count")
    upto: int | None = Field(
        default=None, ge=0, le=2**63 - 2, description="Of a dry run: leave newer jobs alone"
    )


class PreviewOut(BaseModel):
    """What an order would do."""

    verb: BulkVerb
    dry_run: bool
    matched: int
    is_more: bool = Field(description="Counting stopped at `matched`")
    sample: list[UUID]
    upto: int


class BulkRunOut(BaseModel):
    """How far an order has come."""

    id: UUID
    verb: BulkVerb
    state: str = Field(
        description="running, done, failed, or interrupted: its server is gone; order it again"
    )
    done: int
    refused: dict[str, int] = Field(description="Jobs by the reason why not")
    ordered_by: str
    started_at: datetime
    updated_at: datetime


async def _may_order(request: Request, who: Caller) -> Caller:
    """The caller, if any verb is for it; which one is asked for stands in the body."""
    needed = sorted(set(PERMISSION.values()))
    if not any(map(who.access.allows, needed)):
        await who.refuse(" or ".join(needed), act_of(request), "route", request.url.path)
    return who


Review = Callable[[Collection[bytes]], Awaitable[Mapping[bytes, Access]]]


@dataclass(frozen=True, slots=True)
class BulkCaller:
    """Whose order a run is, and what that secret was allowed when it was given."""

    principal: UUID
    digest: bytes | None
    permission: str
    reach: Reach

    def limits(self, verb: BulkVerb) -> verbs.Limits | None:
        """How far jobs may wait again; None: they do not, or nothing is bound."""
        if verb is not BulkVerb.RETRY or self.reach.least_bounds == UNBOUND:
            return None
        reach = self.reach

        def bounds(job: Job) -> Bounds:
            at = {"owner": job.created_by, "workspace": job.workspace, "lane": job.lane}
            # One that has left its lane since is bound as far as any other.
            return reach.bounds(**at) if reach.covers(**at) else reach.least_bounds

        return verbs.Limits(self.principal, bounds)


class BulkRuns:
    """The runs of this process; each says in the database how far it has come."""

    def __init__(self, database: Database, review: Review) -> None:
        self._database = database
        self._review = review
        # Each with whose order it is.
        self._tasks: dict[asyncio.Task[None], UUID] = {}

    def check(self, principal: UUID) -> None:
        """Refuses yet another run of somebody: they use the connections of all."""
        if sum(owner == principal for owner in self._tasks.values()) >= MOST_AT_ONCE:
            raise RateLimited("too many bulk runs of yours are under way", 5.0)

    def start(
        self, run_id: UUID, orderer: BulkCaller, order: BulkRequest, by: str, upto: int | None
    ) -> None:
        task = asyncio.get_running_loop().create_task(self._run(run_id, orderer, order, by, upto))
        self._tasks[task] = orderer.principal
        task.add_done_callback(self._tasks.pop)

    async def close(self) -> None:
        """Stops between two jobs: what is done is done, and the same order goes on from there."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(
        self, run_id: UUID, orderer: BulkCaller, order: BulkRequest, by: str, upto: int | None
    ) -> None:
        tally, state = BulkProgress(order.verb), "running"
        try:
            limits = orderer.limits(order.verb)
            run = verbs.run(self._database, order, by=by, upto=upto, limits=limits)
            async for tally in run:
                await self._report(run_id, "running", tally)
                await self._check(orderer)
            state = "done"
        except LanewayError as error:
            state = "failed"
            log.warning("%s in bulk (%s) failed: %s", order.verb, run_id, error)
        except Exception:
            state = "failed"
            log.exception("%s in bulk (%s) failed", order.verb, run_id)
        finally:
            await self._report(run_id, state, tally)

    async def _check(self, orderer: BulkCaller) -> None:
        """Refuse to go on for a principal that may no longer do what it ordered."""
        digest = orderer.digest
        found = {} if digest is None else await self._review({digest})
        access = None if digest is None else found.get(digest)
        reach = None if access is None else _reach(access, orderer.permission)
        if reach is None or not set(orderer.reach.terms) <= set(reach.terms):
            raise Forbidden("stopped: whoever ordered it may not do this any more")

    async def _report(self, run_id: UUID, state: str, tally: BulkProgress) -> None:
        try:
            await self._database.run(store.report(run_id, state, tally.done, tally.refused))
        except LanewayError as error:
            log.warning("bulk run %s: not reported: %s", run_id, error)


@router.post(
    "",
    operation_id="order_bulk",
    status_code=202,
    response_model=BulkRunOut,
    response_description="Begun: ask its Location how far it is",
    responses={
        200: {"model": PreviewOut, "description": "A dry run: nothing was done"},
        202: {
            "headers": {
                "Location": {"description": "Where the run is", "schema": {"type": "string"}}
            }
        },
        **answers(409, 413),
    },
)
async def order_bulk(
    request: Request,
    who: Annotated[Caller, Depends(gate(_may_order))],
    order: BulkRunRequest,
    once: OnceOnly,
) -> Response:
    """A verb on all jobs in reach that match; needs the permission of the verb."""
    permission = PERMISSION[order.verb]
    if not who.access.allows(permission):
        await who.refuse(permission, f"bulk {order.verb}", "job")
    reach = _reach(who.access, permission)
    if order.verb is BulkVerb.REPRIORITIZE:
        check_priority_bound(order.priority, reach.least_bounds)
    made = BulkRequest(
        verb=order.verb,
        wanted=order.filter.within(reach, debug_reach(who.access)),
        everything=order.all,
        reason=order.reason,
        priority=order.priority,
    ).check(who.actor)
    if order.dry_run:
        slots: ReadSlots = request.app.state.read_slots
        async with slots.hold(who.access.principal_id):
            return Json((await verbs.preview(who.database, made, by=who.actor)).to_dict())
    runs: BulkRuns = request.app.state.bulk_runs
    run_id, principal = uuid4(), who.access.principal_id
    orderer = BulkCaller(principal, secret_digest(request), permission, reach)

    async def act(db: Database) -> Response:
        runs.check(principal)
        run = await db.run(store.begin(run_id, principal, who.actor, made.verb))
        return Json(_shown(run), 202, {"Location": location(request, f"/jobs/bulk/{run_id}")})

    def start() -> None:
        runs.start(run_id, orderer, made, who.actor, order.upto)

    return await once.answer(act, start)


@router.get("/{run_id}", operation_id="get_bulk", response_model=BulkRunOut, responses=answers(404))
async def get_bulk(who: Annotated[Caller, Depends(caller)], run_id: UUID) -> Response:
    """How far a run has come: for whoever ordered it, and for who may read all jobs."""
    run = await who.database.run(store.read(run_id))
    may_see = run is not None and (
        run.principal_id == who.access.principal_id or who.access.allows_everywhere("jobs:read")
    )
    if run is None or not may_see:
        raise NotFound(f"no bulk run {run_id}")
    return Json(_shown(run))


def _reach(access: Access, permission: str) -> Reach:
    """As for one job: verbs of operators need no more than their own permission."""
    is_of_jobs = permission.startswith("jobs:")
    return actable_reach(access, permission) if is_of_jobs else access.reach(permission)


def _shown(run: StoredBulkRun) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "verb": run.verb,
        "state": run.state,
        "done": run.done,
        "refused": dict(run.refused),
        "ordered_by": run.ordered_by,
        "started_at": run.started_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
    }
