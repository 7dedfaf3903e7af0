"""Live streams: one job until it ends, or several topics for one page."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.datastructures import State

from laneway.api.http.auth import Caller, action_of, needs, secret_digest
from laneway.api.http.event_response import EventResponse
from laneway.api.http.job_access import readable
from laneway.api.http.problems import errors
from laneway.api.models.events import EVENTS, JOB_EVENTS, described
from laneway.domain.event import (
    LONGEST_CURSOR,
    MAX_TOPICS,
    Cursor,
    LogPosition,
    Topic,
)
from laneway.domain.permissions import Access
from laneway.errors import NotFound
from laneway.store import events as store
from laneway.store.database import Database
from laneway.streams.frames import Rendering, frame
from laneway.streams.hub import Hub
from laneway.streams.stream import JobStream, TopicStream

router = APIRouter(tags=["streams"])

Reader = Annotated[Caller, Depends(needs("jobs:read"))]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=LONGEST_CURSOR,
        description="The id of the last received event: the stream continues after it",
    ),
]
Topics = Annotated[
    list[str],
    Query(
        alias="topic",
        min_length=1,
        max_length=MAX_TOPICS,
        description="jobs, job:<id>, flow:<id>, lane:<name>, job_type:<name>, approvals or lanes",
    ),
]
_NUMBER: Final = "The position in the job's log; valid on every replica"
_PLACE: Final = "The position in the log; valid on every replica"


@router.get(
    "/jobs/{job_id}/stream",
    operation_id="stream_job",
    status_code=200,
    response_class=Response,
    responses={
        **described(JOB_EVENTS, _NUMBER),
        204: {"description": "The job has ended and the client has received its last event"},
        **errors(404),
    },
)
async def stream_job(
    request: Request, who: Reader, job_id: UUID, last_event_id: LastEventId = None
) -> Response:
    """Stream a job's current state, then each change; the stream ends when the job has ended."""
    await readable(who, job_id)
    digest = secret_digest(request)
    return await follow_job(request.app.state, job_id, last_event_id, who.access, digest)


async def follow_job(
    state: State, job_id: UUID, last_event_id: str | None, access: Access, digest: bytes | None
) -> Response:
    """A job's stream for a reader; without a digest, the reader has no token to be checked."""
    last = LogPosition.read(last_event_id) if last_event_id else None
    hub: Hub = state.hub
    stream = JobStream(access, digest, await _number(state.database, job_id))
    hub.enter(stream)
    try:
        first = await hub.join_job(stream, last)
    except BaseException:
        hub.leave(stream)
        raise
    if first is None:
        hub.leave(stream)
        return Response(status_code=204)
    return EventResponse(hub, stream, _frames(stream, first))


@router.get(
    "/events",
    operation_id="stream_events",
    status_code=200,
    response_class=Response,
    responses={**described(EVENTS, _PLACE), **errors(404)},
)
async def stream_events(
    request: Request, who: Reader, topic: Topics, last_event_id: LastEventId = None
) -> Response:
    """Stream the changes of several topics that the caller may see."""
    topics = [Topic.of(text) for text in dict.fromkeys(topic)]
    since = Cursor.read(last_event_id) if last_event_id else None
    if Topic("lanes") in topics and not who.access.allows("workers:view"):
        await who.refuse("workers:view", action_of(request), "route", request.url.path)
    seqs = []
    for each in topics:
        if each.kind == "job":
            job_id = UUID(each.name)
            await readable(who, job_id)
            seqs.append(await _number(who.database, job_id))
    hub: Hub = request.app.state.hub
    stream = TopicStream(who.access, secret_digest(request), topics, seqs)
    hub.enter(stream)
    try:
        can_resume, here = await hub.join_topics(stream, since)
    except BaseException:
        hub.leave(stream)
        raise
    first = _first(hub, stream, since if can_resume else None, here)
    return EventResponse(hub, stream, first)


async def _first(
    hub: Hub, stream: TopicStream, since: Cursor | None, here: Cursor
) -> AsyncIterator[bytes]:
    topics = [str(topic) for topic in stream.topics]
    opened = {"resumed": since is not None, "topics": topics}
    yield frame("stream.opened", str(since or here), opened)
    if since is not None:
        async for part in hub.missed(stream, since, here):
            yield part


async def _frames(stream: JobStream, first: deque[Rendering]) -> AsyncIterator[bytes]:
    # One at a time: all of them together may not fit into memory.
    while first:
        event = first.popleft()
        yield event.job_frame(stream.log, debug=stream.shows_debug(event.event))


async def _number(database: Database, job_id: UUID) -> int:
    found = await database.run(store.numbers([job_id]))
    if job_id not in found:
        raise NotFound(f"no job {job_id}")
    return found[job_id]
