"""The scope of a permission on flows and events: each belongs to a workspace, a flow to its owner.

A flow has jobs of any lane, so a grant that is limited to lanes covers none.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fastapi import Request

from laneway.api.http.auth import Caller, action_of, gate, permit
from laneway.control import flows
from laneway.control.operators import Operator
from laneway.domain.bounds import UNBOUND
from laneway.domain.flow import Flow
from laneway.domain.job import DEFAULT_WORKSPACE
from laneway.domain.permissions import Reach
from laneway.errors import NotFound
from laneway.operations.flows import retry_flow
from laneway.operations.operation import Operation
from laneway.store.quotas import Quota, event_account

VIEW: Final = "jobs:read"


@dataclass(frozen=True, slots=True)
class FlowCaller:
    """A caller whose permission covers flows, or the events, of some workspaces and owners."""

    who: Caller
    permission: str
    action: str

    async def operator(self, asked: Operation[Any, Any], fields: Mapping[str, Any]) -> Operator:
        """The operator, unless the flow or the workspace is out of reach."""
        reach = self.who.access.reach(self.permission)
        quota = None
        if asked.scope == "workspace":
            workspace = fields.get("workspace", DEFAULT_WORKSPACE)
            quota = await self._event_quota(reach, workspace)
        elif "{flow_id}" in asked.path:
            flow = await self.find(fields["flow_id"])
            if asked is retry_flow:
                bounds = reach.bounds(owner=flow.created_by, workspace=flow.workspace, lane=None)
                quota = None if bounds == UNBOUND else Quota(self.who.access.principal_id, bounds)
        return Operator(self.who.database, self.who.actor, as_text=True, reach=reach, quota=quota)

    async def find(self, flow_id: UUID) -> Flow:
        """The flow, if it is in reach; NotFound if the caller may not even see it."""
        try:
            found = await flows.get(self.who.database, flow_id)
            if not covers(self.who.access.reach(VIEW), found):
                raise NotFound(f"no flow {flow_id}")
        except NotFound:
            if self.permission == VIEW:
                raise
            await self.who.miss(VIEW, self.action, "flow", str(flow_id))
        if not covers(self.who.access.reach(self.permission), found):
            needed = f"{self.permission} for this flow"
            await self.who.refuse(needed, self.action, "flow", str(flow_id))
        return found

    async def _event_quota(self, reach: Reach, workspace: str) -> Quota | None:
        """The quota of events to a workspace; refuses one that is out of reach."""
        # Any job of the workspace may take an event, so it belongs to no owner.
        at = {"owner": None, "workspace": workspace, "lane": None}
        if not reach.covers(**at):
            needed = f"{self.permission} in the workspace {workspace}"
            if not reach.terms:
                needed += "; the scope own covers no events"
            await self.who.refuse(needed, self.action, "event")
        bounds = reach.bounds(**at)
        if not bounds.needs_counting:
            return None
        return Quota(event_account(self.who.access.principal_id), bounds)


def covers(reach: Reach, flow: Flow) -> bool:
    return reach.covers(owner=flow.created_by, workspace=flow.workspace, lane=None)


def over_workspaces(permission: str) -> Callable[..., Coroutine[Any, Any, FlowCaller]]:
    """A dependency: the caller, if it has the permission; the workspace is checked later."""

    async def check(request: Request, who: Caller) -> FlowCaller:
        if not who.access.holds(permission):
            await permit(request, who, permission)
        return FlowCaller(who, permission, action_of(request))

    return gate(check)


def over_flows(permission: str) -> Callable[..., Coroutine[Any, Any, FlowCaller]]:
    """A dependency: the caller, if the permission covers anything at all."""

    async def check(request: Request, who: Caller) -> FlowCaller:
        await permit(request, who, permission)
        return FlowCaller(who, permission, action_of(request))

    return gate(check)
