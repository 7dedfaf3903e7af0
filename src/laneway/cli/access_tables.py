"""Tables of principals, roles, grants and tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from laneway.cli.output import moment, visible
from laneway.cli.tables import columns
from laneway.domain.bounds import BOUNDED, UNBOUND
from laneway.domain.token import TokenExpiry, expiry_text

if TYPE_CHECKING:
    from laneway.domain.access import Principal, Role, RoleGrant, Token


def _listed(names: Sequence[str] | None, otherwise: str) -> str:
    return otherwise if names is None else visible(", ".join(names))


def principals(items: Iterable[Principal]) -> Table:
    table = columns("PRINCIPAL", "KIND", "STATE", "CREATED", "BY")
    for each in items:
        state = Text("disabled", "red") if each.is_disabled else Text("enabled", "green")
        table.add_row(
            visible(each.name), each.kind, state, moment(each.created_at), visible(each.created_by)
        )
    return table


def roles(items: Iterable[Role]) -> Table:
    table = columns("ROLE", "ORIGIN", "PERMISSIONS")
    for each in items:
        origin = "built-in" if each.is_seeded else "custom"
        table.add_row(each.name, origin, _listed(each.permissions, "-"))
    return table


def grants(items: Iterable[RoleGrant], roles: Iterable[Role]) -> Table:
    permissions = {role.name: role.permissions for role in roles}
    table = columns("ID", "PRINCIPAL", "ROLE", "SCOPE", "WORKSPACE", "LANES", "BOUNDS", "BY")
    for each in items:
        table.add_row(
            str(each.id),
            visible(each.principal),
            each.role,
            each.scope,
            visible(each.workspace or "-"),
            _listed(each.lanes, "all"),
            _bounds(each, permissions.get(each.role, ())),
            visible(each.granted_by),
        )
    return table


def _bounds(grant: RoleGrant, permissions: Collection[str]) -> str:
    """The bounds in force; usual ones, which the grant does not set, are marked."""
    if BOUNDED.isdisjoint(permissions):
        return "-"
    given = asdict(grant.bounds)
    in_force, unbound = asdict(grant.bounds.in_force(permissions)), asdict(UNBOUND)
    texts = [
        f"{name} {value:,}" + ("" if given[name] is not None else " (usual)")
        for name, value in in_force.items()
        if given[name] is not None or value != unbound[name]
    ]
    return ", ".join(texts) or "none"


def tokens(items: Iterable[Token]) -> Table:
    table = columns(
        "ID",
        "PRINCIPAL",
        "NAME",
        "BEGINS",
        "STATE",
        "EXPIRES",
        "USED",
        "PERMISSIONS",
        "LANES",
        "CLAIMS",
    )
    for each in items:
        table.add_row(
            str(each.id),
            visible(each.principal),
            visible(each.name),
            f"{each.hint}…",
            _state(each),
            "never" if each.expires_at is None else moment(each.expires_at),
            moment(each.last_used_at),
            _listed(each.permissions, "all of its roles"),
            _listed(each.lanes, "all"),
            _listed(each.job_types, "all"),
        )
    return table


def _state(token: Token) -> Text:
    if token.revoked_at is not None:
        return Text("revoked", "red")
    if token.expires_at is None:
        return Text("live", "green")
    # Display only: the database decides whether a token is still accepted.
    left_s = (token.expires_at - datetime.now(UTC)).total_seconds()
    if left_s <= 0:
        return Text("expired", "yellow")
    life_s = (token.expires_at - token.created_at).total_seconds()
    if TokenExpiry(token.expires_at, left_s, life_s).soon_s is not None:
        return Text(expiry_text(left_s), "yellow")
    return Text("live", "green")
