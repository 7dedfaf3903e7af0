"""The operations on limits. All lanes share them, so the permission must cover everything.

`put_limit` is written by hand: it answers 201 or 200, and the client gives it a whole `Limit`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from laneway.domain.change import Change, RollbackTarget
from laneway.domain.limit import LimitName, LimitStatus
from laneway.domain.page import Page
from laneway.operations.operation import Operation, operation

_LIMITS: Final = "/admin/limits"
_LIMIT: Final = f"{_LIMITS}/{{name}}"
_views: Final = partial(operation, permission="workers:view", scope="everywhere")
_manages: Final = partial(operation, permission="workers:manage", scope="everywhere")


@_views("GET", _LIMITS, page=200, command="limits ls")
def list_limits() -> Page[LimitStatus]:
    """List every limit with its use."""


@_views("GET", _LIMIT, command="limits ls")
def get_limit(name: LimitName) -> LimitStatus:
    """Show one limit with its use."""


@_manages("DELETE", _LIMIT, status=204, command="limits delete")
def delete_limit(name: LimitName) -> None:
    """Delete a limit that no job type needs."""


@_views("GET", f"{_LIMIT}/history", is_expensive=True, command="limits history")
def list_limit_changes(name: LimitName) -> Page[Change]:
    """List the kept changes of a limit, newest first; also of a deleted one."""


@_manages("POST", f"{_LIMIT}/rollback", field="change", command="limits rollback")
def roll_back_limit(name: LimitName, to: RollbackTarget = None) -> Change | None:
    """Roll a limit back to an earlier state."""


LIMITS: Final[tuple[Operation[Any, Any], ...]] = (
    list_limits, get_limit, delete_limit, list_limit_changes, roll_back_limit,
)  # fmt: skip
