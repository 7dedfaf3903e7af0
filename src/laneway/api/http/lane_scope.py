"""The scope of a permission on objects that belong to no workspace: all lanes, or some."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request

from laneway.api.http.auth import Caller, action_of, gate, permit
from laneway.errors import NotFound

VIEW: Final = "workers:view"


@dataclass(frozen=True, slots=True)
class LaneCaller:
    """A caller and the lanes that its permission covers; None: all lanes."""

    who: Caller
    permission: str
    action: str
    lanes: frozenset[str] | None

    def reaches(self, lane: str) -> bool:
        return self.lanes is None or lane in self.lanes

    def reaches_any(self, lanes: Iterable[str] | None) -> bool:
        """Whether it covers any of these lanes; None: all lanes."""
        return self.lanes is None or lanes is None or not self.lanes.isdisjoint(lanes)

    async def check(self, lane: str) -> None:
        """Refuse a lane out of reach; raise NotFound if the caller may not even see it."""
        if self.reaches(lane):
            return
        seen = self.who.access.reach(VIEW).lanes
        if seen is None or lane in seen:
            await self.refuse(lane)
        if self.permission == VIEW:
            raise NotFound(f"no lane {lane}")
        await self.who.miss(VIEW, self.action, "lane", lane)

    async def check_whole(self, name: str | None = None) -> None:
        """Refuse a caller without all lanes, for changes that affect more than the named lane."""
        if self.lanes is not None:
            await self.refuse(name)

    async def refuse(self, name: str | None) -> None:
        await self.who.refuse(f"{self.permission} on all lanes", self.action, "lane", name)


async def check_named(caller: LaneCaller, names: Iterable[str] | None) -> None:
    """Refuse lanes out of reach; None: all lanes."""
    if names is None:
        await caller.check_whole()
    for name in names or ():
        await caller.check(name)


def over_lanes(permission: str) -> Callable[..., Coroutine[Any, Any, LaneCaller]]:
    """A dependency: the caller and its lanes, if the permission covers at least one whole lane."""

    async def check(request: Request, who: Caller) -> LaneCaller:
        await permit(request, who, permission)
        caller = LaneCaller(who, permission, action_of(request), who.access.reach(permission).lanes)
        if caller.lanes is not None and not caller.lanes:
            await who.refuse(f"{permission} on a lane", caller.action, "route", request.url.path)
        return caller

    return gate(check)


def everywhere(permission: str) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, if the permission is not limited to some jobs or lanes."""

    async def check(request: Request, who: Caller) -> Caller:
        await permit(request, who, permission)
        if not who.access.allows_everywhere(permission):
            await who.refuse(
                f"{permission} everywhere", action_of(request), "route", request.url.path
            )
        return who

    return gate(check)
