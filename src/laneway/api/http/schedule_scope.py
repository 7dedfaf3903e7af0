"""The scope of a permission on schedules: each belongs to a workspace and to a lane."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import Request

from laneway.api.http.auth import Caller, action_of, gate, permit
from laneway.api.http.job_access import quota_of
from laneway.control import schedules
from laneway.control.operators import Operator
from laneway.domain.bounds import Bounds, check_priority_bound
from laneway.domain.schedule import Schedule, ScheduleSettings
from laneway.errors import NotFound
from laneway.operations.operation import Operation
from laneway.operations.schedules import run_schedule
from laneway.store import lanes

VIEW: Final = "schedules:view"


@dataclass(frozen=True, slots=True)
class ScheduleCaller:
    """A caller whose permission covers the schedules of some workspaces and lanes."""

    who: Caller
    permission: str
    action: str

    async def operator(self, asked: Operation[Any, Any], fields: Mapping[str, Any]) -> Operator:
        """The operator, unless the schedule is out of reach, as it is or as it would become."""
        quota = None
        found = await self._find(fields["name"]) if "{name}" in asked.path else None
        settings = {
            each: fields[each] for each in ScheduleSettings.__annotations__ if each in fields
        }
        # A deletion and a stop submit no jobs, so there is nothing more to check.
        if asked.method in ("POST", "PATCH") and settings != {"enabled": False}:
            after = Schedule(**fields) if found is None else replace(found, **settings)
            bounds = await self._check(after)
            quota = quota_of(self.who, bounds) if asked is run_schedule else None
        reach = self.who.access.reach(self.permission)
        return Operator(self.who.database, self.who.actor, as_text=True, reach=reach, quota=quota)

    async def _find(self, name: str) -> Schedule:
        """The schedule, if it is in reach; NotFound if the caller may not even see it."""
        try:
            found = await schedules.get(self.who.database, name, as_text=True)
            if await self._covers(self.permission, found):
                return found
            if not await self._covers(VIEW, found):
                raise NotFound(f"no schedule {name}")
        except NotFound:
            if self.permission == VIEW:
                raise
            await self.who.miss(VIEW, self.action, "schedule", name)
        await self.who.refuse(self.permission, self.action, "schedule", name)
        raise NotFound(f"no schedule {name}")

    async def _check(self, after: Schedule) -> Bounds:
        """Refuse a schedule out of reach or with too high a priority; return the bounds."""
        state = await self.who.database.run(lanes.read())
        reach, lane = self.who.access.reach(self.permission), state.lane_of(after.job_type)
        if not reach.covers(owner=None, workspace=after.workspace, lane=lane):
            await self.who.refuse(f"{self.permission} there", self.action, "schedule", after.name)
        bounds = reach.bounds(owner=None, workspace=after.workspace, lane=lane)
        check_priority_bound(after.priority, bounds)
        return bounds

    async def _covers(self, permission: str, found: Schedule) -> bool:
        state = await self.who.database.run(lanes.read())
        reach, lane = self.who.access.reach(permission), state.lane_of(found.job_type)
        return reach.covers(owner=None, workspace=found.workspace, lane=lane)


def over_schedules(permission: str) -> Callable[..., Coroutine[Any, Any, ScheduleCaller]]:
    """A dependency: the caller, if the permission covers anything at all."""

    async def check(request: Request, who: Caller) -> ScheduleCaller:
        await permit(request, who, permission)
        return ScheduleCaller(who, permission, action_of(request))

    return gate(check)
