"""Submits a flow, and streams its changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from laneway.api.http.auth import Caller, needs, secret_digest
from laneway.api.http.bodies import JobBodyRoute
from laneway.api.http.event_response import PING_S, EventResponse
from laneway.api.http.flow_scope import FlowCaller, covers, over_flows
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.job_access import Wanted, check_parents, check_submits, within_quota
from laneway.api.http.problems import errors
from laneway.api.http.responses import Json, location
from laneway.api.models.events import FLOW_EVENTS, described
from laneway.api.models.jobs import FlowRequest, SubmittedFlowOut
from laneway.api.routes.submission import check_duplicates, check_room, submitted
from laneway.client import Client, JobHandle
from laneway.client.flow_draft import FlowJobOptions
from laneway.control import flows as verbs
from laneway.control.audit import audited
from laneway.domain.codec import to_json
from laneway.domain.event import Topic
from laneway.domain.flow import Flow, NamedJob, OrderedJob, arrange
from laneway.store import quotas
from laneway.store.database import Database
from laneway.store.quotas import Quota
from laneway.streams.frames import PING, frame
from laneway.streams.hub import Hub
from laneway.streams.stream import FlowStream

router = APIRouter(tags=["flows"], route_class=JobBodyRoute)
streams = APIRouter(tags=["streams"])

Submitter = Annotated[Caller, Depends(needs("jobs:submit"))]
FlowReader = Annotated[FlowCaller, Depends(over_flows("jobs:read"))]


@router.post(
    "/flows",
    operation_id="submit_flow",
    status_code=202,
    response_model=SubmittedFlowOut,
    response_description="Submitted",
    responses={
        202: {
            "headers": {
                "Location": {"description": "Path of the flow", "schema": {"type": "string"}}
            }
        },
        **errors(409, 413),
    },
)
async def submit_flow(
    request: Request, who: Submitter, flow: FlowRequest, guard: Idempotent
) -> Response:
    """Submit jobs with edges between them in one transaction: all or none.

    `after` has names of other jobs of the flow, in any order, or ids of existing jobs.
    """
    ordered = arrange([NamedJob(job.name, job.after) for job in flow.jobs])
    quota = await check_submits(
        who,
        (
            Wanted(flow.workspace, job.job_type, job.priority, f"jobs[{i}].")
            for i, job in enumerate(flow.jobs)
        ),
    )
    await check_parents(who, {parent for job in ordered for parent in job.outside})
    client: Client = request.app.state.client
    made: list[JobHandle] = []

    async def apply(db: Database) -> Response:
        async with db.joined() as one, audited(one, who.actor, "flow.submitted", "flow") as change:
            if quota is not None:
                await one.run(check_room(quota, ((flow.workspace, job) for job in flow.jobs)))
            stored, made[:] = await _store(one, client, who, flow, ordered)
            await _charge(one, quota, made)
            await check_duplicates(one, who, made)
            change.name, change.workspace = str(stored.id), stored.workspace
            change.after = {
                "name": stored.name,
                "count": len(made),
                "job_types": sorted({handle.job_type for handle in made}),
            }
        values = to_json(stored) | {"jobs": [submitted(handle) for handle in made]}
        return Json(values, 202, {"Location": location(request, f"/flows/{stored.id}")})

    return await within_quota(request, quota, lambda: guard.run(apply, lambda: client.wake(made)))


async def _store(
    db: Database, client: Client, who: Caller, asked: FlowRequest, ordered: list[OrderedJob]
) -> tuple[Flow, list[JobHandle]]:
    """The stored flow, and its jobs in the order of the request."""
    handles: dict[int, JobHandle] = {}
    async with (
        db.connection() as conn,
        client.flow(
            asked.name,
            tags=asked.tags,
            workspace=asked.workspace,
            created_by=str(who.actor),
            conn=conn,
        ) as flow,
    ):
        for place in ordered:
            job = asked.jobs[place.position]
            options = FlowJobOptions(**job.job_options(), name=job.name)
            parents = [handles[parent] for parent in place.parents]
            options["after"] = [*parents, *place.outside]
            handles[place.position] = flow.add(job.job_type, job.payload, **options)
    return await verbs.get(db, flow.id), [handles[i] for i in range(len(asked.jobs))]


async def _charge(db: Database, quota: Quota | None, made: list[JobHandle]) -> None:
    fresh = [handle.id for handle in made if not handle.duplicate]
    if quota is not None and fresh:
        await db.run(quotas.charge(quota, fresh))


@streams.get(
    "/flows/{flow_id}/stream",
    operation_id="stream_flow",
    status_code=200,
    response_class=Response,
    responses={**described(FLOW_EVENTS, "The position in the log"), **errors(404)},
)
async def stream_flow(request: Request, caller: FlowReader, flow_id: UUID) -> Response:
    """Stream a flow: its state now and after changes, and each change of its jobs.

    The stream ends when all jobs of the flow have ended. After an interruption, the first event
    again has the current state.
    """
    await caller.find(flow_id)
    hub: Hub = request.app.state.hub
    topic = Topic("flow", str(flow_id))
    stream = FlowStream(caller.who.access, secret_digest(request), topic)
    hub.enter(stream)
    try:
        _, here = await hub.join_topics(stream, None)
    except BaseException:
        hub.leave(stream)
        raise
    return EventResponse(hub, stream, _frames(caller, stream, flow_id, str(here)))


async def _frames(
    caller: FlowCaller, stream: FlowStream, flow_id: UUID, place: str
) -> AsyncIterator[bytes]:
    """The frames of the stream, and the flow itself whenever it has changed."""
    last: Flow | None = None
    while True:
        flow = await caller.find(flow_id)
        if not covers(stream.reach, flow):
            # Its grants have changed since the start.
            stream.end()
            return
        if flow != last:
            yield frame(
                f"flow.{flow.status}" if flow.is_over else "flow.state", place, to_json(flow)
            )
            last = flow
        if flow.is_over:
            stream.end()
            return
        while not stream.is_changed:
            frames = await stream.take(PING_S)
            if frames is None:
                return
            yield frames or PING
            if not frames:
                break
        stream.is_changed = False
