"""The operation on the audit. It contains everything, so the permission must cover everything."""

from __future__ import annotations

from laneway.domain.audit import AuditEntry, AuditFilter
from laneway.domain.page import Page
from laneway.operations.operation import operation


@operation(
    "GET",
    "/admin/audit",
    permission="audit:read",
    scope="everywhere",
    is_expensive=True,
    command="audit",
)
def list_audit_entries(wanted: AuditFilter | None = None) -> Page[AuditEntry]:
    """List audit entries that match all given filters, newest first.

    A search examines 50,000 entries per page. If a page is short, `next_cursor` continues.
    """
