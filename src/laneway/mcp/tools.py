"""The tools: each is a request to the API, with the rights of its caller."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field

from laneway.domain.codec import to_json
from laneway.domain.flow import AFTER_FAILURE_DOC, AfterFailure, FlowFilter, FlowStatus
from laneway.domain.job_id import only_match, parse_id
from laneway.domain.review import Review
from laneway.domain.states import Status
from laneway.http import AsyncClient
from laneway.mcp.inputs import FlowJobInput
from laneway.mcp.outputs import (
    ExplanationResult,
    FlowPageOut,
    FlowResult,
    JobDetailResult,
    JobPageOut,
    ListedJob,
    StandingOut,
    SubmittedFlowOut,
)
from laneway.operations import flows, lanes
from laneway.operations.operation import Operation

M = TypeVar("M", bound=BaseModel)

# Empty text stands for "not given": a text that reads like JSON is otherwise taken for JSON.
Text = Annotated[str, Field(max_length=2000)]
# Of a job's log, for an assistant that reads every word.
MAX_LINES: Final = 20
JobId = Annotated[
    str,
    Field(min_length=4, max_length=36, description="Of the job; may be abbreviated as in tables"),
]


class Tool(NamedTuple):
    """The permission of a tool, and what it may do; one without an operation has a method below."""

    permission: str
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True
    operation: Operation[Any, Any] | None = None
    # Settings of the operation that assistants cannot give.
    without: tuple[str, ...] = ()


def declared(
    operation: Operation[Any, Any], *, destructive: bool = False, without: tuple[str, ...] = ()
) -> Tool:
    """The tool of an operation."""
    writes, idempotent = operation.method != "GET", operation.method != "POST"
    return Tool(operation.permission, writes, destructive, idempotent, operation, without)


TOOLS: Final[dict[str, Tool]] = {
    "list_jobs": Tool("jobs:read"),
    "get_job": Tool("jobs:read"),
    "explain_job": Tool("jobs:read"),
    "list_flows": Tool("jobs:read"),
    "get_flow": declared(flows.get_flow),
    "list_lanes": declared(lanes.list_lanes),
    "find_lane": declared(lanes.find_lane),
    "submit_job": Tool("jobs:submit", writes=True, idempotent=False),
    "submit_flow": Tool("jobs:submit", writes=True, idempotent=False),
    "approve_job": Tool("jobs:approve", writes=True),
    "reject_job": Tool("jobs:approve", writes=True, destructive=True),
    "cancel_job": Tool("jobs:cancel", writes=True, destructive=True),
    "run_job_now": Tool("jobs:cancel", writes=True),
    "cancel_flow": declared(flows.cancel_flow, destructive=True)._replace(idempotent=True),
    "retry_flow": declared(flows.retry_flow),
    "send_event": declared(flows.send_event),
    "reprioritize_job": Tool("workers:manage", writes=True),
    "tune_lane": declared(lanes.tune_lane, destructive=True, without=("job_types",)),
}


class Tools:
    """A method for each tool; its docstring is what an assistant reads of it."""

    def __init__(self, client: Callable[[], AsyncClient]) -> None:
        self._client = client

    async def list_jobs(
        self,
        status: Status | None = None,
        lane: Annotated[str, Field(max_length=63)] = "",
        job_type: Annotated[str, Field(max_length=128)] = "",
        tag: Annotated[str, Field(max_length=128)] = "",
        worker: Annotated[str, Field(max_length=256, description="Name or id")] = "",
        workspace: Annotated[str, Field(max_length=128)] = "",
        flow: Annotated[str, Field(max_length=36, description="The id of their flow")] = "",
        since: Annotated[datetime | None, Field(description="Submitted then or later")] = None,
        q: Annotated[
            str, Field(max_length=1000, description="Text in id, job type, payload or error")
        ] = "",
        error_type: Annotated[
            str, Field(max_length=200, description="Failed with this type of error")
        ] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
        cursor: Annotated[
            str, Field(max_length=512, description="The next_cursor of the page before")
        ] = "",
    ) -> JobPageOut:
        """Lists jobs, newest first; all filters that are given must hold, empty ones are none.

        A search that would take long stops: looked_back_to says where, next_cursor goes on.
        """
        given = {"lane": lane, "job_type": job_type, "tag": tag, "worker": worker, "q": q}
        filters: dict[str, Any] = {name: text for name, text in given.items() if text}
        if error_type:
            filters["error_type"] = error_type
        if workspace:
            filters["workspace"] = workspace
        if flow:
            filters["flow"] = flow
        if status is not None:
            filters["status"] = status
        if since is not None:
            filters["since"] = since
        found = self._client().list_jobs(**filters)
        page = await found.page(limit=limit, cursor=cursor or None)
        items = [_shown(ListedJob, job) for job in page.items]
        return JobPageOut(
            items=items, next_cursor=page.next_cursor, looked_back_to=page.looked_back_to
        )

    async def get_job(self, job_id: JobId) -> JobDetailResult:
        """Shows one job with its payload, result, attempts and decisions.

        Values above 32 KiB are left out: `left_out` says how to read them.
        Tracebacks and the newest log lines are there only for those who may see them.
        """
        shown = briefly(await self._client().review_job(await self._found(job_id)))
        found: JobDetailResult = JobDetailResult.model_validate(shown)
        return found

    async def explain_job(self, job_id: JobId) -> ExplanationResult:
        """Tells every reason why a job is not running, and when it may start."""
        return _shown(
            ExplanationResult, await self._client().explain_job(await self._found(job_id))
        )

    async def list_flows(
        self,
        status: FlowStatus | None = None,
        name: Annotated[str, Field(max_length=128)] = "",
        tag: Annotated[str, Field(max_length=128)] = "",
        workspace: Annotated[str, Field(max_length=128)] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
        cursor: Annotated[
            str, Field(max_length=512, description="The next_cursor of the page before")
        ] = "",
    ) -> FlowPageOut:
        """Lists flows, which are jobs submitted together, newest first, with their counts."""
        wanted = FlowFilter(
            status=status, name=name or None, tag=tag or None, workspace=workspace or None
        )
        found = self._client().list_flows(wanted)
        page = await found.page(limit=limit, cursor=cursor or None)
        items = [FlowResult.model_validate(to_json(flow)) for flow in page.items]
        return FlowPageOut(items=items, next_cursor=page.next_cursor)

    async def submit_job(
        self,
        job_type: Annotated[str, Field(min_length=1, max_length=128)],
        payload: Annotated[Any, Field(description="Its arguments, by name")] = None,
        priority: Annotated[int | None, Field(description="Higher first")] = None,
        delay: Annotated[float | None, Field(description="Seconds until it may start")] = None,
        unique_key: Annotated[
            str, Field(description="At most one job that has not ended has it")
        ] = "",
        workspace: Annotated[str, Field(max_length=128)] = "",
        tags: list[str] | None = None,
        unique_for: Annotated[
            float | None,
            Field(description="Seconds in which at most one job has the key or these arguments"),
        ] = None,
        unique_by: Annotated[
            list[str] | None,
            Field(description="The arguments that form the unique key; of none, all of them"),
        ] = None,
        run_at: Annotated[datetime | None, Field(description="Start then at the earliest")] = None,
        concurrency_key: Annotated[str, Field(description="At most one running job has it")] = "",
        max_retries: Annotated[int | None, Field(description="Retries after a failure")] = None,
        after: Annotated[
            list[str] | None, Field(description="Ids of jobs that must complete first")
        ] = None,
        after_failure: Annotated[AfterFailure | None, Field(description=AFTER_FAILURE_DOC)] = None,
    ) -> ListedJob:
        """Submits a job. With a unique_key, a job that has not ended and has it is answered."""
        options: dict[str, Any] = {"workspace": workspace} if workspace else {}
        made = await self._client().submit(
            job_type,
            payload,
            priority=priority,
            delay=delay,
            unique_key=unique_key or None,
            unique_for=unique_for,
            unique_by=unique_by,
            run_at=run_at,
            concurrency_key=concurrency_key or None,
            max_retries=max_retries,
            tags=tags or (),
            after=after or (),
            after_failure=after_failure,
            **options,
        )
        return _shown(ListedJob, made)

    async def submit_flow(
        self,
        name: Annotated[str, Field(min_length=1, max_length=128)],
        jobs: Annotated[list[FlowJobInput], Field(min_length=1)],
        workspace: Annotated[str, Field(max_length=128)] = "",
        tags: list[str] | None = None,
    ) -> SubmittedFlowOut:
        """Submits jobs with edges between them, all or none; each waits for its `after`."""
        options: dict[str, Any] = {"workspace": workspace} if workspace else {}
        made = await self._client().submit_flow(
            name, [job.given() for job in jobs], tags=tags or (), **options
        )
        shown = to_json(made.flow) | {"jobs": [to_json(job) for job in made.jobs]}
        submitted: SubmittedFlowOut = SubmittedFlowOut.model_validate(shown)
        return submitted

    async def approve_job(
        self,
        job_id: JobId,
        comment: Text = "",
        seal: Annotated[
            str, Field(max_length=512, description="Of get_job: approve only what was shown")
        ] = "",
    ) -> ListedJob:
        """Lets a job that awaits an approval run. Look at it with get_job first; give its seal."""
        done = await self._client().approve_job(
            await self._found(job_id), comment=comment or None, seal=seal or None
        )
        return _shown(ListedJob, done)

    async def reject_job(
        self, job_id: JobId, reason: Annotated[str, Field(min_length=1, max_length=2000)]
    ) -> ListedJob:
        """Cancels a job that awaits an approval, for a reason that is kept."""
        return _shown(ListedJob, await self._client().reject_job(await self._found(job_id), reason))

    async def cancel_job(self, job_id: JobId, reason: Text = "") -> ListedJob:
        """Cancels a job: at once if it waits; if it runs, its worker is asked to stop it."""
        return _shown(
            ListedJob,
            await self._client().cancel_job(await self._found(job_id), reason=reason or None),
        )

    async def run_job_now(self, job_id: JobId) -> ListedJob:
        """Starts a job now that is delayed, snoozed or asleep, or waits for a retry."""
        return _shown(ListedJob, await self._client().run_job_now(await self._found(job_id)))

    async def reprioritize_job(
        self, job_id: JobId, priority: Annotated[int, Field(description="Higher first")]
    ) -> StandingOut:
        """Gives a waiting job another place in its lane; a running or ended one is refused."""
        stands = await self._client().reprioritize_job(await self._found(job_id), priority)
        return StandingOut.model_validate(stands, from_attributes=True)

    async def _found(self, given: str) -> UUID:
        """The full id of an abbreviated one."""
        return await find_id(self._client(), given)


async def find_id(client: AsyncClient, given: str) -> UUID:
    """The job with this id, or the only one with this abbreviation of it."""
    parsed = parse_id(given, "job_id")
    if isinstance(parsed, UUID):
        return parsed
    (found,) = await client.find_job_ids([parsed.text])
    return only_match(parsed, found)


def briefly(review: Review) -> dict[str, Any]:
    """A job with the newest of its log lines only."""
    shown: dict[str, Any] = review.to_dict()
    room = MAX_LINES
    for attempt in reversed(shown["attempts"]):
        attempt["log"] = attempt["log"][-room:] if room else []
        room -= len(attempt["log"])
    return shown


def _shown(model: type[M], found: Any) -> M:
    """A value of the client as its model tells it."""
    return model.model_validate(found.to_dict())
