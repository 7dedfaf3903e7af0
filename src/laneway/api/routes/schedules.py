"""Routes of schedules."""

from __future__ import annotations

from fastapi import APIRouter

from laneway.api.http.bodies import JobBodyRoute
from laneway.api.operations import add_operations
from laneway.operations.schedules import SCHEDULES

router = APIRouter(tags=["schedules"], route_class=JobBodyRoute)
add_operations(router, *SCHEDULES)
