"""Route of the audit."""

from __future__ import annotations

from fastapi import APIRouter

from laneway.api.operations import add_operations
from laneway.operations.audit import list_audit_entries

router = APIRouter(tags=["audit"])
add_operations(router, list_audit_entries)
