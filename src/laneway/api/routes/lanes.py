"""Routes of lanes."""

from __future__ import annotations

from fastapi import APIRouter

from laneway.api.operations import add_operations
from laneway.operations.lanes import LANES

router = APIRouter(tags=["lanes"])
add_operations(router, *LANES)
