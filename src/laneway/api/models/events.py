"""Models of stream events, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, Field

from laneway.api.models.jobs import JobOut
from laneway.domain.flow import Flow, FlowStatus
from laneway.domain.states import TERMINAL
from laneway.operations.models import output_model

# Names of job events, after `job.`; the last three end the job.
CHANGES: Final = (
    "state", "submitted", "analyzed", "approved", "reprioritized", "made_due", "claimed",
    "progressed", "cancel_requested", "snoozed", "waited", "released", "returned", "retried",
    *sorted(TERMINAL),
)  # fmt: skip
CONTROLS: Final = ("lane", "limit", "schedule", "gate", "lanes")


class OpenedOut(BaseModel):
    """The first event of `/events`."""

    resumed: bool = Field(
        description="true: no event is missing since `Last-Event-ID`; false: fetch everything again"
    )
    topics: list[str]


class JobsChangedOut(BaseModel):
    """Many jobs changed, or may have changed: fetch the shown jobs again."""

    change: str | None = Field(description="The change, if it was the same for all of them")
    count: int | None
    workspace: str | None
    lane: str | None
    job_type: str | None


class ControlChangedOut(BaseModel):
    """A lane, limit, schedule or the pause gate changed; without a name: any may have changed."""

    kind: str
    name: str | None
    by: str | None
    before: Any
    after: Any


FlowOut = output_model(Flow)
_JOB: Final = {f"job.{change}": JobOut for change in CHANGES}
JOB_EVENTS: Final[dict[str, type[BaseModel]]] = {**_JOB}
FLOW_EVENTS: Final[dict[str, type[BaseModel]]] = {
    "flow.state": FlowOut,
    **{f"flow.{status}": FlowOut for status in FlowStatus if status is not FlowStatus.RUNNING},
    **_JOB,
    "jobs.changed": JobsChangedOut,
}
EVENTS: Final[dict[str, type[BaseModel]]] = {
    "stream.opened": OpenedOut,
    **_JOB,
    "jobs.changed": JobsChangedOut,
    **{f"{kind}.changed": ControlChangedOut for kind in CONTROLS},
}


def described(events: dict[str, type[BaseModel]], id_of: str) -> dict[int | str, dict[str, Any]]:
    """The 200 response of a route that returns a stream of these events."""
    by_model: dict[type[BaseModel], list[str]] = {}
    for name, model in events.items():
        by_model.setdefault(model, []).append(name)
    item = {"oneOf": [_described(model, names, id_of) for model, names in by_model.items()]}
    content = {"itemSchema": item}
    return {200: {"description": "Events", "content": {"text/event-stream": content}}}


def _described(model: type[BaseModel], names: list[str], id_of: str) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        # Other routes define the schemas of jobs and flows; the other schemas exist only here.
        "contentSchema": {"$ref": f"#/components/schemas/{model.__name__}"}
        if model in (JobOut, FlowOut)
        else model.model_json_schema(),
    }
    return {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string", "description": id_of},
            "event": {"enum": names},
            "data": data,
        },
    }
