"""Existing names, for the message about a missing one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from laneway.domain.missing import hint
from laneway.errors import LanewayError, NotFound
from laneway.store import access, lanes, limits, schedules, webhooks
from laneway.store.database import Database

# There may be many principals: the message names a few of these.
_MAX_NAMES: Final = 1000
# The permission by which a caller sees every name of a kind.
SEEN_BY: Final = {
    "lane": "workers:view",
    "limit": "workers:view",
    "schedule": "schedules:view",
    "webhook": "workers:manage",
    "role": "access:manage",
    "principal": "access:manage",
}


async def with_names(db: Database, error: NotFound) -> NotFound:
    """The error with the nearest names that exist; only for callers who may see all of them."""
    read = _READ.get(error.kind)
    if read is None:
        return error
    with suppress(LanewayError):
        shown = f"{error}; {hint(error.kind, error.name, await read(db))}"
        return NotFound(shown, kind=error.kind, name=error.name)
    return error


async def _lanes(db: Database) -> Iterable[str]:
    return (await db.run(lanes.read())).lanes


async def _limits(db: Database) -> Iterable[str]:
    return [load.limit.name for load in await db.run(limits.read(0))]


async def _schedules(db: Database) -> Iterable[str]:
    return [scope.name for scope in await db.run(schedules.scopes())]


async def _webhooks(db: Database) -> Iterable[str]:
    return [webhook.name for webhook in await db.run(webhooks.read())]


async def _roles(db: Database) -> Iterable[str]:
    return [role.name for role in await db.run(access.list_roles(_MAX_NAMES))]


async def _principals(db: Database) -> Iterable[str]:
    return [principal.name for principal in await db.run(access.list_principals(_MAX_NAMES))]


_READ: Final[dict[str, Callable[[Database], Awaitable[Iterable[str]]]]] = {
    "lane": _lanes,
    "limit": _limits,
    "schedule": _schedules,
    "webhook": _webhooks,
    "role": _roles,
    "principal": _principals,
}
