"""Checks that a caller holds what a grant, a token or a role would give."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from uuid import UUID

from laneway.control import access
from laneway.domain.access import RoleGrant
from laneway.domain.bounds import NO_BOUNDS, BoundsChange, Usual
from laneway.domain.permissions import PERMISSIONS, Access, Grant, Scope, excess
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.operations import access as operations
from laneway.operations.operation import Invocation, Operation
from laneway.store.database import Database

# The id of the taker does not matter for what it may do.
_NO_ID = UUID(int=0)


async def excess_of(db: Database, giver: Access, asked: Invocation[Any]) -> str | None:
    """A permission that the operation would give beyond the giver's; None: there is none."""
    check = _CHECKS.get(asked.operation)
    return None if check is None else await check(db, giver, **asked.arguments)


async def _of_grant(
    db: Database,
    giver: Access,
    principal: str,
    role: str,
    scope: Scope,
    workspace: str | None = None,
    lanes: Iterable[str] | None = None,
    **bounds: int | Usual | None,
) -> str | None:
    """Bounds that are not given stay as they are."""
    permissions = (await _roles(db)).get(role, frozenset())
    chosen = None if lanes is None else frozenset(lanes)
    before = next(
        (
            each.bounds
            for each in await _role_grants(db, principal)
            if (each.role, each.scope, each.workspace) == (role, scope, workspace)
            and (None if each.lanes is None else frozenset(each.lanes)) == chosen
        ),
        NO_BOUNDS,
    )
    change = BoundsChange(**bounds)
    grant = Grant(permissions, scope, workspace, chosen, change.applied_to(before))
    return excess(giver, _taker(principal, (grant,)))


async def _of_token(
    db: Database,
    giver: Access,
    principal: str,
    permissions: Iterable[str] | None = None,
    lanes: Iterable[str] | None = None,
    job_types: Iterable[str] | None = None,
    **_: object,
) -> str | None:
    taker = _taker(principal, await _grants(db, principal), permissions, lanes, job_types)
    return excess(giver, taker)


async def _of_switch(db: Database, giver: Access, name: str, *, disabled: bool) -> str | None:
    return None if disabled else await _of_token(db, giver, name)


async def _of_role(
    db: Database, giver: Access, name: str, permissions: Iterable[str]
) -> str | None:
    """The giver must have the permissions of a role everywhere."""
    wanted = set(permissions)
    lacking = (each for each in PERMISSIONS if each in wanted and not giver.allows_everywhere(each))
    return next(lacking, None)


_CHECKS: Final[dict[Operation[Any, Any], Callable[..., Awaitable[str | None]]]] = {
    operations.create_role: _of_role,
    operations.change_role: _of_role,
    operations.grant_role: _of_grant,
    operations.create_token: _of_token,
    operations.switch_principal: _of_switch,
}


def _taker(
    name: str,
    grants: tuple[Grant, ...],
    permissions: Iterable[str] | None = None,
    lanes: Iterable[str] | None = None,
    job_types: Iterable[str] | None = None,
) -> Access:
    return Access(
        _NO_ID,
        name,
        "service",
        grants,
        token_permissions=None if permissions is None else frozenset(permissions),
        token_lanes=None if lanes is None else frozenset(lanes),
        token_job_types=None if job_types is None else frozenset(job_types),
    )


async def _roles(db: Database) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    after: str | None = None
    while True:
        page = await access.list_roles(db, limit=LONGEST_PAGE, after=after)
        found.update({role.name: frozenset(role.permissions) for role in page})
        if len(page) < LONGEST_PAGE:
            return found
        after = page[-1].name


async def _grants(db: Database, principal: str) -> tuple[Grant, ...]:
    roles = await _roles(db)
    return tuple(
        Grant(
            roles.get(each.role, frozenset()),
            each.scope,
            each.workspace,
            None if each.lanes is None else frozenset(each.lanes),
            each.bounds,
        )
        for each in await _role_grants(db, principal)
    )


async def _role_grants(db: Database, principal: str) -> list[RoleGrant]:
    found: list[RoleGrant] = []
    after: UUID | None = None
    while True:
        page = await access.list_grants(db, principal=principal, limit=LONGEST_PAGE, after=after)
        found += page
        if len(page) < LONGEST_PAGE:
            return found
        after = page[-1].id
