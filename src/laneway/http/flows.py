"""Calls about flows that are not declared operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from laneway.domain.flow import Flow
from laneway.domain.job import DEFAULT_WORKSPACE
from laneway.domain.text import shown
from laneway.errors import InvalidInput
from laneway.http import decode
from laneway.http.call import Call, CallResponse, encoded, listed, once
from laneway.http.jobs import checked_id
from laneway.http.models import Submitted, SubmittedFlow
from laneway.http.procedure import EventSource, Procedure, of_flow
from laneway.http.procedure import wait_flow as wait

_JOB: Final = '{"job_type": "page", "payload": {"n": 1}}'


def submit_flow(
    name: str,
    jobs: Iterable[Mapping[str, object]],
    *,
    tags: Sequence[str] = (),
    workspace: str = DEFAULT_WORKSPACE,
    idempotency_key: str | None = None,
) -> Call[SubmittedFlow]:
    """Submit jobs with edges between them, all or none.

    Each is a mapping with the names of `submit`, and perhaps a `name`; `after` has names of other
    jobs of the flow, or ids of existing jobs.
    """
    body = {
        "name": name,
        "workspace": workspace,
        "tags": listed(tags, "tags"),
        "jobs": _listed_jobs(jobs),
    }
    return once(Call("POST", "/flows", _submitted, (), encoded(body)), idempotency_key)


def _listed_jobs(jobs: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    if isinstance(jobs, (str, bytes, Mapping)) or not isinstance(jobs, Iterable):
        raise InvalidInput("jobs", f"must be a list of mappings, as in [{_JOB}], not {shown(jobs)}")
    made = []
    for i, each in enumerate(jobs):
        if not isinstance(each, Mapping):
            raise InvalidInput(f"jobs[{i}]", f"must be a mapping, as in {_JOB}, not {shown(each)}")
        made.append(dict(each))
    return made


def _submitted(response: CallResponse) -> SubmittedFlow:
    made = [decode.read(Submitted, each) for each in response.body["jobs"]]
    return SubmittedFlow(decode.read(Flow, response.body), made)


def watch_flow(flow_id: UUID | str) -> EventSource:
    """The flow now and after changes, and the changes of its jobs, until all have ended."""
    return of_flow(checked_id(flow_id))


def wait_flow(flow_id: UUID | str, timeout: float | timedelta | None = None) -> Procedure[Flow]:
    """The flow once all its jobs have ended.

    JobFailed unless all completed, TimeoutError after `timeout`.
    """
    return wait(checked_id(flow_id), timeout)
