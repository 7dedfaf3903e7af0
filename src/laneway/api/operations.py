"""Routes made from the declarations of operations."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter, Signature
from types import NoneType
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from laneway.api.http import portions
from laneway.api.http.auth import Caller, action_of
from laneway.api.http.flow_scope import FlowCaller, over_flows, over_workspaces
from laneway.api.http.idempotency import IdempotencyGuard, Idempotent
from laneway.api.http.job_access import within_quota
from laneway.api.http.lane_scope import LaneCaller, check_named, everywhere, over_lanes
from laneway.api.http.paging import Cursor, Limit
from laneway.api.http.portions import RowBatch
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.http.responses import Json, location
from laneway.api.http.schedule_scope import ScheduleCaller, over_schedules
from laneway.api.models.declared import AnyOperation, body_model, response_model
from laneway.control import delegation
from laneway.control.operators import Operator, PageRequest, perform, read_page
from laneway.domain.annotations import Doc, find_mark, unwrap
from laneway.domain.codec import to_json
from laneway.domain.page import Page
from laneway.operations.operation import Invocation
from laneway.store.database import Database

_REQUIRED = Parameter.empty


def add_operations(router: APIRouter, *operations: AnyOperation) -> None:
    """Give the router a route for each operation."""
    for each in operations:
        router.add_api_route(
            each.path,
            _endpoint(each),
            methods=[each.method],
            operation_id=each.name,
            description=each.description,
            status_code=each.status,
            response_model=response_model(each),
            responses=errors(*each.problems),
            dependencies=EXPENSIVE if each.is_expensive else (),
        )


# -- requests ---------------------------------------------------------------------------------


def _endpoint(operation: AnyOperation) -> Any:
    """The function of the route; its signature says to FastAPI what to read and what to check."""

    async def endpoint(
        request: Request,
        caller: LaneCaller | ScheduleCaller | FlowCaller | Caller,
        body: Any = None,
        guard: IdempotencyGuard | None = None,
        limit: int = 0,
        cursor: str | None = None,
        **path: Any,
    ) -> Response:
        sent = {} if body is None else {n: getattr(body, n) for n in body.model_fields_set}
        who = await _operator(operation, caller, sent | path)
        asked = operation.given(sent | path)
        if isinstance(caller, Caller):
            await _check_delegation(request, caller, asked)
        if operation.item is not None:
            return await _list(who, asked, PageRequest(limit, cursor))

        async def apply(db: Database) -> Response:
            found = await perform(replace(who, db=db), asked)
            if operation.output is NoneType:
                return Response(status_code=operation.status)
            shown = to_json(found)
            wrapped = shown if operation.field is None else {operation.field: shown}
            return Json(wrapped, operation.status, _headers(operation, request, found))

        return await within_quota(
            request, who.quota, lambda: apply(who.db) if guard is None else guard.run(apply)
        )

    endpoint.__name__ = operation.name
    endpoint.__signature__ = Signature(_parameters(operation))  # type: ignore[attr-defined]
    return endpoint


def _parameters(operation: AnyOperation) -> list[Parameter]:
    taken: dict[str, Any] = {
        "request": Request,
        "caller": Annotated[Any, Depends(_gate(operation))],
    }
    defaults: dict[str, Any] = {}
    for each in operation.inputs_of("path"):
        # Its rules are checked after the scope, so that callers learn nothing of other names.
        taken[each.name] = unwrap(each.hint)[0]
    for each in operation.inputs_of("query"):
        for name, hint in (each.settings or {each.name: each.hint}).items():
            doc = find_mark(hint, Doc)
            query = Query(description=None if doc is None else doc.text)
            taken[name] = Annotated[hint, query]
            defaults[name] = None if each.settings else each.default
    if (model := body_model(operation)) is not None:
        taken["body"] = model
        if not any(each.settings or each.is_required for each in operation.inputs_of("body")):
            taken["body"], defaults["body"] = model | None, None
    if operation.takes_key:
        taken["guard"] = Idempotent
    if operation.item is not None:
        taken |= {"limit": Limit, "cursor": Cursor}
        defaults |= {"limit": operation.page, "cursor": None}
    return [
        Parameter(
            name, Parameter.KEYWORD_ONLY, annotation=hint, default=defaults.get(name, _REQUIRED)
        )
        for name, hint in taken.items()
    ]


def _gate(operation: AnyOperation) -> Any:
    gates = {
        "everywhere": everywhere,
        "schedule": over_schedules,
        "flow": over_flows,
        "workspace": over_workspaces,
    }
    return gates.get(operation.scope, over_lanes)(operation.permission)


async def _operator(
    operation: AnyOperation,
    caller: LaneCaller | ScheduleCaller | FlowCaller | Caller,
    fields: dict[str, Any],
) -> Operator:
    """The operator; refuses what is out of the caller's scope."""
    if isinstance(caller, (ScheduleCaller, FlowCaller)):
        return await caller.operator(operation, fields)
    if isinstance(caller, LaneCaller):
        await _check_lanes(operation, caller, fields)
        return Operator(caller.who.database, caller.who.actor, caller.lanes, as_text=True)
    reach = caller.access.reach(operation.permission)
    return Operator(caller.database, caller.actor, as_text=True, reach=reach)


async def _check_lanes(operation: AnyOperation, caller: LaneCaller, fields: dict[str, Any]) -> None:
    if "{name}" in operation.path:
        await caller.check(fields["name"])
    if operation.scope == "named lanes":
        await check_named(caller, fields.get("lanes"))
    if operation.scope == "all lanes" or any(name in fields for name in operation.all_lanes_for):
        await caller.check_whole(fields.get("name"))
    if operation.scope == "lanes" and fields.get("lane") is not None:
        await caller.check(fields["lane"])


async def _check_delegation(request: Request, who: Caller, asked: Invocation[Any]) -> None:
    """Refuse a caller that would grant a permission it does not hold; the audit records it."""
    excess = await delegation.excess_of(who.database, who.access, asked)
    if excess is not None:
        taker = asked.arguments.get("principal", asked.arguments.get("name"))
        needed = f"{excess} as far as it would be granted"
        await who.refuse(needed, action_of(request), "access", taker)


# -- responses --------------------------------------------------------------------------------


async def _list(who: Operator, asked: Invocation[Page[Any]], page: PageRequest) -> Response:
    async def read(count: int, after: str | None) -> RowBatch:
        found = await read_page(who, asked, PageRequest(count, after))
        return RowBatch(to_json(found.items), found.next_cursor)

    if asked.operation.is_expensive:
        return await portions.page(read, *page)
    rows, following = await read(*page)
    return Json({"items": rows, "next_cursor": following})


def _headers(operation: AnyOperation, request: Request, found: Any) -> dict[str, str] | None:
    if operation.location is None:
        return None
    return {"Location": location(request, operation.location.format_map(to_json(found)))}
