"""The operation on the audit, done in a database."""

from __future__ import annotations

from laneway.control import audit
from laneway.control.operators.table import implement_list
from laneway.operations.audit import list_audit_entries

implement_list(
    list_audit_entries,
    lambda who, page, wanted=None: audit.listing(
        who.db, wanted, limit=page.limit, cursor=page.cursor, as_text=who.as_text
    ),
)
