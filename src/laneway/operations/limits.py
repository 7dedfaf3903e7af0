"""The operations on limits. All lanes share them, so the permission must cover everything.

`put_limit` is written by hand: it answers 201 or 200, and the client gives it a whole `Limit`.
"""

from __future__ import annotations

from typing import Any, Final

from laneway.domain.change import Change, RollbackTarget
from laneway.domain.limit import LimitName, LimitStatus
from laneway.domain.page import Page
from laneway.operations.operation import Operation, operation

_LIMITS: Final = "/admin/limits"
_LIMIT: Final = f"{_LIMITS}/{{name}}"


@operation(
    "GET", _LIMITS, permission="workers:view", scope="everywhere", page=200, command="limits ls"
)
def list_limits() -> Page[LimitStatus]:
    """List every limit with its use."""


@operation("GET", _LIMIT, permission="workers:view", scope="everywhere", command="limits ls")
def get_limit(name: LimitName) -> LimitStatus:
    """Show one limit with its use."""


@operation(
    "DELETE",
    _LIMIT,
    permission="workers:manage",
    scope="everywhere",
    status=204,
    command="limits delete",
)
def delete_limit(name: LimitName) -> None:
    """Delete a limit that no job type needs."""


@operation(
    "GET",
    f"{_LIMIT}/history",
    permission="workers:view",
    scope="everywhere",
    is_expensive=True,
    command="limits history",
)
def list_limit_changes(name: LimitName) -> Page[Change]:
    """List the kept changes of a limit, newest first; also of a deleted one."""


@operation(
    "POST",
    f"{_LIMIT}/rollback",
    permission="workers:manage",
    scope="everywhere",
    field="change",
    command="limits rollback",
)
def roll_back_limit(name: LimitName, to: RollbackTarget = None) -> Change | None:
    """Roll a limit back to an earlier state."""


LIMITS: Final[tuple[Operation[Any, Any], ...]] = (
    list_limits, get_limit, delete_limit, list_limit_changes, roll_back_limit,
)  # fmt: skip
