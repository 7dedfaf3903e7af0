"""Bulk verbs on all jobs that match a filter; a dry run counts, a run works in the background."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from laneway.api.http.auth import Caller, action_of, caller, gate, secret_digest
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.job_access import debug_reach
from laneway.api.http.paging import RequestBody
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import ReadSlots
from laneway.api.http.responses import Json, location
from laneway.api.models.jobs import JobChoice
from laneway.control import bulk
from laneway.control.bulk_runs import PERMISSION, BulkCaller, BulkRuns, reach_of
from laneway.domain.bounds import check_priority_bound
from laneway.domain.bulk import BulkPreview, BulkRequest, BulkRun, BulkVerb
from laneway.domain.codec import to_json
from laneway.domain.job import PRIORITY_RANGE
from laneway.errors import NotFound
from laneway.operations.models import output_model
from laneway.store import bulk as store
from laneway.store.database import Database

router = APIRouter(prefix="/jobs/bulk", tags=["jobs"])


class BulkRunRequest(RequestBody):
    """A verb and the jobs it applies to."""

    verb: Annotated[BulkVerb, Field(strict=False)]
    filter: JobChoice = JobChoice()
    all: bool = Field(default=False, description="Must be true if the filter is empty")
    reason: str | None = Field(
        default=None, min_length=1, max_length=2000, description="Required to reject"
    )
    priority: int | None = Field(
        default=None,
        ge=PRIORITY_RANGE[0],
        le=PRIORITY_RANGE[1],
        description="Required to reprioritize",
    )
    dry_run: bool = Field(default=False, description="Only count")
    upto: int | None = Field(
        default=None, ge=0, le=2**63 - 2, description="From a dry run: ignore newer jobs"
    )


BulkRunOut = output_model(BulkRun)


async def _may_run_any(request: Request, who: Caller) -> Caller:
    """The caller, if it may use at least one verb. The verb itself is in the body."""
    needed = sorted(set(PERMISSION.values()))
    if not any(map(who.access.allows, needed)):
        await who.refuse(" or ".join(needed), action_of(request), "route", request.url.path)
    return who


@router.post(
    "",
    operation_id="start_bulk",
    status_code=202,
    response_model=BulkRunOut,
    response_description="Started: read its progress at Location",
    responses={
        200: {"model": output_model(BulkPreview), "description": "A dry run: nothing was changed"},
        202: {
            "headers": {
                "Location": {"description": "Path of the run", "schema": {"type": "string"}}
            }
        },
        **errors(409, 413),
    },
)
async def start_bulk(
    request: Request,
    who: Annotated[Caller, Depends(gate(_may_run_any))],
    body: BulkRunRequest,
    guard: Idempotent,
) -> Response:
    """Run a verb on all matching jobs in reach; needs the verb's permission."""
    permission = PERMISSION[body.verb]
    if not who.access.allows(permission):
        await who.refuse(permission, f"bulk {body.verb}", "job")
    reach = reach_of(who.access, permission)
    if body.verb is BulkVerb.REPRIORITIZE:
        check_priority_bound(body.priority, reach.least_bounds)
    checked = BulkRequest(
        verb=body.verb,
        wanted=body.filter.within(reach, debug_reach(who.access)),
        everything=body.all,
        reason=body.reason,
        priority=body.priority,
    ).check(who.actor)
    if body.dry_run:
        slots: ReadSlots = request.app.state.read_slots
        async with slots.hold(who.access.principal_id):
            return Json((await bulk.preview(who.database, checked, by=who.actor)).to_dict())
    runs: BulkRuns = request.app.state.bulk_runs
    run_id, principal = uuid4(), who.access.principal_id
    bulk_caller = BulkCaller(principal, secret_digest(request), permission, reach)

    async def apply(db: Database) -> Response:
        runs.check(principal)
        run = await db.run(store.begin(run_id, principal, who.actor, checked.verb))
        return Json(to_json(run), 202, {"Location": location(request, f"/jobs/bulk/{run_id}")})

    def start() -> None:
        runs.start(run_id, bulk_caller, checked, who.actor, body.upto)

    return await guard.run(apply, start)


@router.get("/{run_id}", operation_id="get_bulk", response_model=BulkRunOut, responses=errors(404))
async def get_bulk(who: Annotated[Caller, Depends(caller)], run_id: UUID) -> Response:
    """Read the progress of a run; only for its caller, or with jobs:read everywhere."""
    run = await who.database.run(store.read(run_id))
    may_see = run is not None and (
        run.principal_id == who.access.principal_id or who.access.allows_everywhere("jobs:read")
    )
    if run is None or not may_see:
        raise NotFound(f"no bulk run {run_id}")
    return Json(to_json(run))
