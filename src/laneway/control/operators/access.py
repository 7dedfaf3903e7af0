"""Operations on principals, roles, grants and tokens, done in a database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from laneway.control import access
from laneway.control.operators.table import Operator, PageRequest, implement, implement_list
from laneway.domain.access import NewToken, Principal, Role, RoleGrant, Token
from laneway.domain.bounds import BoundsChange, Usual
from laneway.domain.page import Page
from laneway.domain.verb_rules import uuid_position
from laneway.operations import access as operations


async def _list_principals(who: Operator, page: PageRequest) -> Page[Principal]:
    found = await access.list_principals(who.db, limit=page.limit, after=page.cursor)
    return page.of(found, lambda each: each.name)


async def _switch_principal(who: Operator, name: str, *, disabled: bool) -> Principal:
    switch = access.disable_principal if disabled else access.enable_principal
    return await switch(who.db, name, by=who.by)


async def _list_roles(who: Operator, page: PageRequest) -> Page[Role]:
    found = await access.list_roles(who.db, limit=page.limit, after=page.cursor)
    return page.of(found, lambda each: each.name)


async def _list_grants(
    who: Operator, page: PageRequest, *, principal: str | None = None, role: str | None = None
) -> Page[RoleGrant]:
    after = uuid_position(page.cursor)
    found = await access.list_grants(
        who.db, principal=principal, role=role, limit=page.limit, after=after
    )
    return page.of(found, lambda each: each.id)


async def _grant_role(
    who: Operator,
    principal: str,
    role: str,
    scope: str,
    workspace: str | None = None,
    lanes: Iterable[str] | None = None,
    **bounds: int | Usual | None,
) -> RoleGrant:
    change = BoundsChange(**bounds)
    place = (principal, role, scope, workspace, lanes)
    return await access.grant_role(who.db, *place, bounds=change, by=who.by)


async def _revoke_grant(who: Operator, grant_id: UUID) -> None:
    await access.revoke_grant(who.db, grant_id, by=who.by)


async def _list_tokens(
    who: Operator, page: PageRequest, *, principal: str | None = None
) -> Page[Token]:
    after = uuid_position(page.cursor)
    found = await access.list_tokens(who.db, principal=principal, limit=page.limit, after=after)
    return page.of(found, lambda each: each.id)


async def _create_token(
    who: Operator, principal: str, name: str, *narrowed: Any, **more: Any
) -> NewToken:
    return await access.create_token(who.db, principal, name, *narrowed, **more, by=who.by)


implement_list(operations.list_principals, _list_principals)
implement(
    operations.create_principal,
    lambda who, name, kind: access.create_principal(who.db, name, kind, by=who.by),
)
implement(operations.switch_principal, _switch_principal)
implement_list(operations.list_roles, _list_roles)
implement(
    operations.create_role,
    lambda who, name, permissions: access.create_role(who.db, name, permissions, by=who.by),
)
implement(
    operations.change_role,
    lambda who, name, permissions: access.change_role(who.db, name, permissions, by=who.by),
)
implement(operations.delete_role, lambda who, name: access.delete_role(who.db, name, by=who.by))
implement_list(operations.list_grants, _list_grants)
implement(operations.grant_role, _grant_role)
implement(operations.revoke_grant, _revoke_grant)
implement_list(operations.list_tokens, _list_tokens)
implement(operations.create_token, _create_token)
implement(
    operations.revoke_token, lambda who, token_id: access.revoke_token(who.db, token_id, by=who.by)
)
