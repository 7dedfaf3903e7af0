"""How far a permission goes where no workspace owns the object: over all lanes, or over some."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request

from laneway.api.http.auth import Caller, act_of, gate, permit
from laneway.errors import NotFound

VIEW: Final = "workers:view"


@dataclass(frozen=True, slots=True)
class LaneCaller:
    """A caller with the lanes that a permission gives it; None: all of them."""

    who: Caller
    permission: str
    act: str
    lanes: frozenset[str] | None

    def reaches(self, lane: str) -> bool:
        return self.lanes is None or lane in self.lanes

    def reaches_any(self, lanes: Iterable[str] | None) -> bool:
        """Of the lanes somebody serves, None being all."""
        return self.lanes is None or lanes is None or not self.lanes.isdisjoint(lanes)

    async def check(self, lane: str) -> None:
        """Returns for a lane in reach; a lane that cannot even be seen is not there."""
        if self.reaches(lane):
            return
        seen = self.who.access.reach(VIEW).lanes
        if seen is None or lane in seen:
            await self.refuse(lane)
        if self.permission == VIEW:
            raise NotFound(f"no lane {lane}")
        await self.who.miss(VIEW, self.act, "lane", lane)

    async def check_whole(self, name: str | None = None) -> None:
        """Returns when every lane is in reach: for what concerns more lanes than the one named."""
        if self.lanes is not None:
            await self.refuse(name)

    async def refuse(self, name: str | None) -> None:
        await self.who.refuse(f"{self.permission} on all lanes", self.act, "lane", name)


def over_lanes(permission: str) -> Callable[..., Coroutine[Any, Any, LaneCaller]]:
    """A dependency: the caller and its lanes, if the permission covers any lane as a whole."""

    async def check(request: Request, who: Caller) -> LaneCaller:
        await permit(request, who, permission)
        caller = LaneCaller(who, permission, act_of(request), who.access.reach(permission).lanes)
        if caller.lanes is not None and not caller.lanes:
            await who.refuse(f"{permission} on a lane", caller.act, "route", request.url.path)
        return caller

    return gate(check)


def everywhere(permission: str) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, if the permission covers everything there is."""

    async def check(request: Request, who: Caller) -> Caller:
        await permit(request, who, permission)
        if not who.access.allows_everywhere(permission):
            await who.refuse(f"{permission} everywhere", act_of(request), "route", request.url.path)
        return who

    return gate(check)
