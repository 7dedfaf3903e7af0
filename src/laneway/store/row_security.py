"""Row-level security, as statements: whether it binds this role, and to which workspaces."""

from __future__ import annotations

from collections.abc import Collection

from laneway.store.statement import Statement, nothing, scalar


def are_bound() -> Statement[bool]:
    """Whether this role sees no more jobs than those it is narrowed to."""
    return Statement("rows/check_binding", scalar)


def narrow(workspaces: Collection[str]) -> Statement[None]:
    """Shows the rest of the transaction only jobs of these workspaces."""
    return Statement("rows/narrow_jobs", nothing, {"workspaces": sorted(workspaces)})
