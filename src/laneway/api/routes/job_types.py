"""Job types that workers have published, and the applications that publish them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.problems import errors
from laneway.api.operations import add_operations
from laneway.control import job_types
from laneway.operations.job_types import JOB_TYPES, OfType

router = APIRouter(tags=["workers"])
add_operations(router, *JOB_TYPES)

Manager = Annotated[Caller, Depends(everywhere("workers:manage"))]


class ForgottenOut(BaseModel):
    """The job types that an application no longer publishes."""

    application: str
    job_types: list[str]


@router.delete(
    "/admin/workers/publishers/{application:path}",
    operation_id="forget_publisher",
    response_model=ForgottenOut,
    responses=errors(404),
)
async def forget_publisher(who: Manager, application: str, job_type: OfType = None) -> Any:
    """Forget the policy of a removed application, for one job type or for all.

    The policies of other applications apply when their workers next start.
    """
    forgotten = await job_types.forget_publisher(
        who.database, application, job_type=job_type, by=who.actor
    )
    return {"application": application, "job_types": forgotten}
