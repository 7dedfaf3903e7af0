"""Row-level security, as statements."""

from __future__ import annotations

from collections.abc import Collection

from laneway.store.statement import Statement, nothing, scalar


def applies() -> Statement[bool]:
    """Whether row-level security restricts this role."""
    return Statement("row_security/check_role", scalar)


def restrict(workspaces: Collection[str]) -> Statement[None]:
    """Restricts the rest of the transaction to jobs of these workspaces."""
    return Statement("row_security/restrict_jobs", nothing, {"workspaces": sorted(workspaces)})
