"""Routes of the pause gate, frozen lanes and statistics."""

from __future__ import annotations

from fastapi import APIRouter

from laneway.api.operations import add_operations
from laneway.operations.workers import WORKERS

router = APIRouter(tags=["workers"])
add_operations(router, *WORKERS)
