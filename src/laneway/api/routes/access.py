"""Routes of principals, roles, grants and tokens."""

from __future__ import annotations

from fastapi import APIRouter

from laneway.api.operations import add_operations
from laneway.operations.access import ACCESS

router = APIRouter(tags=["access"])
add_operations(router, *ACCESS)
