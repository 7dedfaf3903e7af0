"""Routes of limits."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.problems import errors
from laneway.api.http.responses import Json
from laneway.api.models.declared import settings_model
from laneway.api.operations import add_operations
from laneway.control import limits as verbs
from laneway.domain.codec import to_json
from laneway.domain.limit import Limit, LimitSettings, LimitStatus
from laneway.operations.limits import LIMITS
from laneway.operations.models import output_model

router = APIRouter(tags=["limits"])
add_operations(router, *LIMITS)

LimitStatusOut = output_model(LimitStatus)
NewSettings: Any = settings_model("LimitSettings", LimitSettings, Limit)


@router.put(
    "/admin/limits/{name}",
    operation_id="put_limit",
    response_model=LimitStatusOut,
    responses={
        **errors(409, 413),
        201: {"description": "The limit was created", "model": LimitStatusOut},
    },
)
async def put_limit(
    who: Annotated[Caller, Depends(everywhere("workers:manage"))], name: str, settings: NewSettings
) -> Json:
    """Create or replace a limit; workers apply it at their next claim."""
    tuned = await verbs.tune(who.database, name, settings.model_dump(), by=who.actor)
    status = await verbs.get(who.database, name)
    return Json(to_json(status), 201 if tuned.is_new else 200)
